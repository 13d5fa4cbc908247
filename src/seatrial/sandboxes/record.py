"""What is written down about a living sandbox, so that another process can remove it.

``pod`` writes it before anything else of the sandbox exists; ``leftovers`` reads it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.removal import remove_tree
from seatrial.sandboxes.options import Owner

FILE = "sandbox.json"


class ProcessRef(Frozen):
    """A process that cannot be taken for a later one with the same number."""

    pid: int
    started: int
    """In ticks since the machine started."""
    boot: str

    @classmethod
    def current(cls) -> ProcessRef:
        return _named(os.getpid())

    @property
    def lives(self) -> bool:
        return self.boot == _boot_id() and _start_time(self.pid) == self.started


class SandboxRecord(Frozen):
    """Whose sandbox it is and which process holds it."""

    sandbox: str
    owner: Owner
    process: ProcessRef
    created_at: datetime

    @classmethod
    def new(cls, sandbox: str, owner: Owner) -> SandboxRecord:
        return cls(sandbox=sandbox, owner=owner, process=ProcessRef.current(), created_at=datetime.now(UTC))

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


def remove_recorded(directory: Path) -> str:
    """Removes a sandbox's directory, its record last: what could not be removed is still found the next time.

    Returns why something is left, or nothing."""
    paths = list(directory.iterdir()) if directory.is_dir() else []
    problems = [remove_tree(path) for path in paths if path.name != FILE]
    return "; ".join(filter(None, problems)) or remove_tree(directory)


@lru_cache(maxsize=1)
def _named(pid: int) -> ProcessRef:
    """The same for as long as a process lives; one that was forked asks for its own."""
    return ProcessRef(pid=pid, started=_start_time(pid) or 0, boot=_boot_id())


def _start_time(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
