"""A hint that there is work: quick within a process, soon between processes, never lost between two waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.adapters.queue_local import LocalQueue
from seatrial.ports.queue import Queue
from tests.waiting import LIMIT_SEC


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return LocalQueue(tmp_path)


async def waited(queue: Queue, timeout: float) -> float:
    start = time.monotonic()
    await queue.wait(timeout)
    return time.monotonic() - start


async def woken(queue: Queue) -> None:
    """An hour is long enough: only an announcement ends this wait."""
    await asyncio.wait_for(queue.wait(3600), LIMIT_SEC)


async def test_without_an_announcement_it_waits_to_the_end(queue: Queue) -> None:
    assert await waited(queue, 0.25) >= 0.25
    await asyncio.wait_for(queue.wait(0), LIMIT_SEC)


async def test_an_announcement_wakes_a_waiting_worker(queue: Queue) -> None:
    waiting = asyncio.create_task(woken(queue))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await queue.announce()
    await waiting


async def test_an_announcement_between_two_waits_counts_once(queue: Queue) -> None:
    await queue.announce()
    await queue.announce()
    await woken(queue)
    assert await waited(queue, 0.25) >= 0.25


async def test_another_process_wakes_this_one(queue: Queue, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from seatrial.adapters.queue_local import LocalQueue\n"
        "asyncio.run(LocalQueue(Path(sys.argv[1])).announce())"
    )
    waiting = asyncio.create_task(queue.wait(3600))
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(tmp_path)], check=True)
    await asyncio.wait_for(waiting, LIMIT_SEC)
    assert await waited(queue, 0.25) >= 0.25


async def test_the_sign_stays_small(tmp_path: Path) -> None:
    queue = LocalQueue(tmp_path)
    (tmp_path / "wake").write_bytes(b"." * (1 << 16))
    await queue.announce()
    assert (tmp_path / "wake").stat().st_size == 1
    await woken(queue)
