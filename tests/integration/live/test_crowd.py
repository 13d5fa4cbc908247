"""Many listeners at once: all hear everything, and nobody waits for one who does not read."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.crowd_of_listeners import listening, never_reading
from tests.integration.live.conftest import Live
from tests.live_processes import submit, worker_process
from tests.waiting import eventually

LISTENERS = 500


async def test_five_hundred_listeners_hear_everything(live: Live) -> None:
    job = await submit(live.installation, 60)
    path = f"/jobs/{job.id}/events"
    async with listening(live.address, path, LISTENERS) as ears:
        with worker_process(live.home, seconds=0.2, capacity=10):
            async with asyncio.timeout(120):
                while any(ear.ended_at is None for ear in ears):
                    await asyncio.sleep(0.1)
    wanted = [event.seq for event in await live.installation.store.events.read(job_id=job.id, limit=5000)]
    assert len(wanted) > 60 * 4
    assert [ear.seen == wanted for ear in ears].count(False) == 0
    ends = [ear.ended_at or 0.0 for ear in ears]
    assert max(ends) - min(ends) < 5.0  # a machine that does other things too takes a second


async def test_who_does_not_read_holds_up_nobody_and_costs_little(live: Live) -> None:
    """The kernel takes some of what is sent to them; the rest must wait for nobody and lie nowhere."""
    job = await submit(live.installation, 40)
    path = f"/jobs/{job.id}/events?kinds=trial.output,trial.ended"
    before = _memory_mb(live.api_pid)
    async with never_reading(live.address, path, 30), listening(live.address, f"/jobs/{job.id}/events", 5) as ears:
        with worker_process(live.home, seconds=1.0, capacity=10):
            started = time.monotonic()
            async with asyncio.timeout(120):
                while any(ear.ended_at is None for ear in ears):
                    await asyncio.sleep(0.1)
                    await live.http.get("/health")
            assert time.monotonic() - started < 60
    wanted = [event.seq for event in await live.installation.store.events.read(job_id=job.id, limit=5000)]
    assert all(ear.seen == wanted for ear in ears)
    assert _memory_mb(live.api_pid) - before < 100


async def test_who_leaves_is_forgotten(live: Live) -> None:
    job = await submit(live.installation, 1)
    files = _open_files(live.api_pid)
    async with listening(live.address, f"/jobs/{job.id}/events", 100):
        assert _open_files(live.api_pid) >= files + 100
    await eventually(lambda: _open_files(live.api_pid) <= files + 5, "who left is forgotten")


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
