"""A hint that there is work: quick within a process, soon between processes, never lost between two waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.ports.wake_up import WakeUp
from tests.waiting import LIMIT_SEC


@pytest.fixture
def wake_up(tmp_path: Path) -> WakeUp:
    return LocalWakeUp(tmp_path)


async def waited(wake_up: WakeUp, timeout: float) -> float:
    start = time.monotonic()
    await wake_up.wait(timeout)
    return time.monotonic() - start


async def woken(wake_up: WakeUp) -> None:
    """An hour is long enough: only an announcement ends this wait."""
    await asyncio.wait_for(wake_up.wait(3600), LIMIT_SEC)


async def test_without_an_announcement_it_waits_to_the_end(wake_up: WakeUp) -> None:
    assert await waited(wake_up, 0.25) >= 0.25
    await asyncio.wait_for(wake_up.wait(0), LIMIT_SEC)


async def test_an_announcement_wakes_a_waiting_worker(wake_up: WakeUp) -> None:
    waiting = asyncio.create_task(woken(wake_up))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await wake_up.announce()
    await waiting


async def test_an_announcement_between_two_waits_counts_once(wake_up: WakeUp) -> None:
    await wake_up.announce()
    await wake_up.announce()
    await woken(wake_up)
    assert await waited(wake_up, 0.25) >= 0.25


async def test_another_process_wakes_this_one(wake_up: WakeUp, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from seatrial.adapters.wake_up_local import LocalWakeUp\n"
        "asyncio.run(LocalWakeUp(Path(sys.argv[1])).announce())"
    )
    waiting = asyncio.create_task(wake_up.wait(3600))
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(tmp_path)], check=True)
    await asyncio.wait_for(waiting, LIMIT_SEC)
    assert await waited(wake_up, 0.25) >= 0.25


async def test_the_sign_stays_small(tmp_path: Path) -> None:
    wake_up = LocalWakeUp(tmp_path)
    (tmp_path / "wake").write_bytes(b"." * (1 << 16))
    await wake_up.announce()
    assert (tmp_path / "wake").stat().st_size == 1
    await woken(wake_up)
