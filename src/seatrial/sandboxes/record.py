"""The record of a running sandbox, by which another process can remove it.

``pod`` writes it before anything else of the sandbox exists; ``leftovers`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.options import Owner
from seatrial.system.processes import ProcessIdentity
from seatrial.system.removal import remove_tree

FILE = "sandbox.json"


class SandboxRecord(Frozen):
    """The owner of a sandbox and the process that holds it."""

    sandbox: str
    owner: Owner
    process: ProcessIdentity
    created_at: datetime

    @classmethod
    def new(cls, sandbox: str, owner: Owner) -> SandboxRecord:
        return cls(sandbox=sandbox, owner=owner, process=ProcessIdentity.mine(), created_at=datetime.now(UTC))

    def write(self, directory: Path) -> None:
        scratch = directory / f".{FILE}"
        scratch.write_text(self.model_dump_json())
        scratch.replace(directory / FILE)

    @classmethod
    def read(cls, directory: Path) -> SandboxRecord | None:
        """``None`` for a directory without a valid record."""
        try:
            return cls.model_validate_json((directory / FILE).read_text())
        except (OSError, ValueError):
            return None


Abandoned = Callable[[SandboxRecord], bool]
"""Whether a sandbox whose process lives is not needed any more, because its trial's lease is gone."""


def remove_recorded(directory: Path) -> str:
    """Removes a sandbox's directory, its record last: what could not be removed is still found the next time.

    Returns why something is left, or nothing."""
    paths = list(directory.iterdir()) if directory.is_dir() else []
    problems = [remove_tree(path) for path in paths if path.name != FILE]
    return "; ".join(filter(None, problems)) or remove_tree(directory)
