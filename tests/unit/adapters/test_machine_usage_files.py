"""Worker processes of one machine share its memory and processors."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen

from seatrial.adapters.machine_usage_files import FileMachineUsage
from seatrial.domain.fleet.packing import NOTHING, Size

_HOLD = """
import sys, time
from pathlib import Path
from seatrial.adapters.machine_usage_files import FileMachineUsage
from seatrial.domain.fleet.packing import Size
usage = FileMachineUsage(Path(sys.argv[1]), "other")
usage.declare(Size(memory_mb=4096, cpus=2))
print("ready", flush=True)
time.sleep(600)
"""


def test_each_sees_what_the_others_hold(tmp_path: Path) -> None:
    one, two, three = (FileMachineUsage(tmp_path, name) for name in ("one", "two", "two"))
    one.declare(Size(memory_mb=2048, cpus=1.5))
    two.declare(Size(memory_mb=512, cpus=0.25))
    assert one.others() == Size(memory_mb=512, cpus=0.25)
    assert three.others() == Size(memory_mb=2560, cpus=1.75)
    two.close()
    assert one.others() == NOTHING


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    mine = FileMachineUsage(tmp_path, "mine")
    with Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"ready\n"
        assert mine.others() == Size(memory_mb=4096, cpus=2)
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert mine.others() == NOTHING
    assert len(list(tmp_path.glob("*.room"))) == 1, "its file is gone, too"


async def test_one_claims_at_a_time(tmp_path: Path) -> None:
    one, two = FileMachineUsage(tmp_path, "one"), FileMachineUsage(tmp_path, "two")
    async with one.turn() as mine:
        assert mine
        async with two.turn() as theirs:
            assert not theirs
    async with two.turn() as theirs:
        assert theirs


def test_a_broken_file_holds_nothing(tmp_path: Path) -> None:
    mine = FileMachineUsage(tmp_path, "mine")
    other = FileMachineUsage(tmp_path, "other")
    name = next(path for path in tmp_path.glob("other-*"))
    name.write_text("what is this")
    assert mine.others() == NOTHING
    other.close()
