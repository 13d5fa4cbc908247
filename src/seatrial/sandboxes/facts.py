"""What was really applied to one sandbox. Both sandboxes fill it in, and the runner writes it into the trial's lock."""

from __future__ import annotations

from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.host.strain import Strain


class SandboxFacts(Frozen):
    """What was really applied to one sandbox, for the trial's lock."""

    image: str | None = None
    image_digest: str | None = None
    image_source: str | None = None
    limits: dict[str, Any] = {}
    network: str = ""
    protections: tuple[str, ...] = ()
    not_applied: tuple[str, ...] = ()
    memory_killed: bool = False
    """A process of the sandbox was killed because the memory limit was reached."""
    strain: Strain = Strain()
    """How often its limits held it up."""
    suspicions: tuple[str, ...] = ()
    """Integrity findings (``suspect_path``, ``suspect_python``, ``suspect_shell``) of before and after grading."""
