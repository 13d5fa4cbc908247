"""Tasks in Harbor's own format (``task.toml``), which Terminal-Bench 2 uses too. They need no mapping.

Harbor's task models are imported for the first task only, so that commands without tasks start quickly.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.domain.task import TaskFormat
from seatrial.ports.tasks import Inspection


class HarborTasks:
    """Reads Harbor tasks of schema 1.4 and older, single-step and multi-step."""

    format = TaskFormat.HARBOR

    def recognises(self, root: Path) -> bool:
        return (root / "task.toml").is_file()

    def inspect(self, root: Path) -> Inspection:
        from seatrial.adapters.harbor_inspection import HarborInspection

        return HarborInspection(root).inspection()

    def prepare(self, root: Path, into: Path) -> Path:
        """Returns the task itself: it is a Harbor task already."""
        return root
