"""Tasks in Harbor's own format (``task.toml``), which Terminal-Bench 2 uses too. They need no mapping.

Harbor's task models are imported when the first task is looked at, so that commands which look at none start quickly.
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
        """The task itself: it is one already."""
        return root
