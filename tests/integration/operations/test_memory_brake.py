"""The memory brake in a real cgroup: a process near its limit claims nothing, one with room does."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

_LIMIT_MB = 256
_GROW = """
import sys
from pathlib import Path
Path(sys.argv[1]).write_text("0")
from seatrial.domain.fleet.pressure import shortage
from seatrial.system.machine import Hardware
here, held = Hardware(), []
print(here.memory_mb, repr(shortage(here.memory(), 5.0)))
while not (why := shortage(here.memory(), 5.0)):
    held.append(b"x" * (1 << 20))
print(len(held), why)
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A memory cgroup with a limit; gives the file by which a process enters it."""
    legacy = Path("/sys/fs/cgroup/memory")
    root, limit = (legacy, "memory.limit_in_bytes") if legacy.is_dir() else (legacy.parent, "memory.max")
    place = root / f"seatrial-test-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    try:
        (place / limit).write_text(str(_LIMIT_MB << 20))
        yield place / "cgroup.procs"
    finally:
        place.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a cgroup")
def test_the_brake_works_before_the_kernel_kills(cgroup: Path) -> None:
    ended = run([sys.executable, "-c", _GROW, str(cgroup)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    first, last = ended.stdout.splitlines()
    assert first.split() == [str(_LIMIT_MB), "''"], "a process with room is not held back"
    assert f"of {_LIMIT_MB} MB of memory" in last and int(last.split()[0]) > _LIMIT_MB / 2
