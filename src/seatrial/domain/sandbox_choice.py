"""Chooses the sandbox of a trial from the job, the task and the sandboxes that work.

Used by ``sandboxes.selection``, which finds out what works, and by the engine's listing of running trials. Knows only
names.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.task import Task

AUTOMATIC = "auto"
_OURS = (AUTOMATIC, "oci", "docker")
SEVERAL_CONTAINERS = "harbor:docker"
"""Runs tasks with several services."""


def needs_several_containers(wanted: str, task: Task) -> bool:
    return bool(task.services) and wanted in _OURS


def chosen_sandbox(wanted: str, task: Task, working: Sequence[str]) -> str | None:
    """``working``: sandboxes that work on the worker, the best first; ``None`` if not known yet."""
    if needs_several_containers(wanted, task):
        return SEVERAL_CONTAINERS
    if wanted != AUTOMATIC:
        return wanted
    return working[0] if working else None
