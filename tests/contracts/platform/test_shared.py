"""Several worker processes on one machine share its protection."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from seatrial.adapters.platform_shared import MachineLock, SharedProtection
from seatrial.testing.fake_platform import FakePlatform
from tests.waiting import until

HOLDER = """
import asyncio, sys
from pathlib import Path
from seatrial.adapters.platform_shared import MachineLock
asyncio.run(MachineLock(Path(sys.argv[1])).share())
print("shared", flush=True)
sys.stdin.read()
"""


async def test_the_machine_stays_protected_while_one_process_is_busy(tmp_path: Path) -> None:
    platform = FakePlatform()
    machine = platform.add("m")
    one, two = (SharedProtection(machine, MachineLock(tmp_path / "busy")) for _ in range(2))
    await one.protect()
    await two.protect()
    await one.release()
    assert platform.protected == {"m": True}
    await two.release()
    assert platform.protected == {"m": False}


async def test_a_protection_waits_for_a_release_that_has_begun(tmp_path: Path) -> None:
    platform = FakePlatform(delays=lambda: 5)
    machine = platform.add("m")
    one, two = (SharedProtection(machine, MachineLock(tmp_path / "busy")) for _ in range(2))
    await one.protect()
    releasing = asyncio.create_task(one.release())
    await asyncio.sleep(0)
    await two.protect()
    await releasing
    assert platform.protected == {"m": True}
    assert [what for _, what in platform.calls] == ["protect", "release", "protect"]


async def test_a_process_that_died_keeps_nothing(tmp_path: Path) -> None:
    platform = FakePlatform()
    mine = SharedProtection(platform.add("m"), MachineLock(tmp_path / "busy"))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "shared\n"
        await mine.protect()
        await mine.release()
        assert platform.protected == {"m": True}
        other.kill()
        until(lambda: other.poll() is not None, "the other process is gone")
        await mine.release()
    assert platform.protected == {"m": False}


async def test_of_those_who_leave_exactly_one_is_the_last(tmp_path: Path) -> None:
    locks = [MachineLock(tmp_path / "alive") for _ in range(4)]
    for lock in locks:
        await lock.share()
    assert [lock.leave_and_take_alone() for lock in locks] == [False, False, False, True]
