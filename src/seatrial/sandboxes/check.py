"""What a look at this machine found: the vocabulary of ``seatrial doctor``."""

from __future__ import annotations

from seatrial.domain.frozen import Frozen


class Finding(Frozen):
    """One thing that works here or does not."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    """The one command that would fix it."""
    needed: bool = True
    """Without it the sandbox does not work at all; otherwise something is done another way, which ``detail`` tells."""
