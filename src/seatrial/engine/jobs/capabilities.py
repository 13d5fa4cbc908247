"""What this installation can run. Small functions, so that use cases know neither Harbor nor any sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Capabilities:
    agent_names: Callable[[], Sequence[str]]
    needs_model: Callable[[str], bool]
    takes_model: Callable[[str], bool]
    has_sandbox: Callable[[str], bool]
    runs_services: Callable[[], Awaitable[bool]]
    """Whether a container engine answers, which tasks with several services need."""
    default_sandbox: str
    """What ``auto`` means here."""
