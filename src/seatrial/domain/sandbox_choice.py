"""Which sandbox a trial gets, as far as that can be told from the job, the task and what works where it runs.

Asked by ``sandboxes.selection``, which finds out what works, and by ``engine.running``, which tells people. It knows
names only, and nothing of how a sandbox is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.task import Task

AUTOMATIC = "auto"
_OURS = (AUTOMATIC, "oci", "docker")
SEVERAL_CONTAINERS = "harbor:docker"
"""Where tasks run that are made of several services."""


def needs_several_containers(wanted: str, task: Task) -> bool:
    return bool(task.services) and wanted in _OURS


def chosen_sandbox(wanted: str, task: Task, working: Sequence[str]) -> str | None:
    """``working`` are those that work there, the best first; ``None`` while nobody knows."""
    if needs_several_containers(wanted, task):
        return SEVERAL_CONTAINERS
    if wanted != AUTOMATIC:
        return wanted
    return working[0] if working else None
