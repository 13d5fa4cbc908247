"""What is written down about a living sandbox, so that another process can remove it.

``pod`` writes it before anything else of the sandbox exists; ``leftovers`` reads it.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.processes import ProcessIdentity
from seatrial.sandboxes.options import Owner

FILE = "sandbox.json"


class SandboxRecord(Frozen):
    """Whose sandbox it is and which process holds it."""

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
        """``None`` for a directory that is not a sandbox of ours."""
        try:
            return cls.model_validate_json((directory / FILE).read_text())
        except (OSError, ValueError):
            return None


def remove_recorded(directory: Path) -> bool:
    """Removes a sandbox's directory, its record last: what could not be removed is still found the next time."""
    for path in list(directory.iterdir()) if directory.is_dir() else []:
        if path.name == FILE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        if path.exists():
            return False
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()
