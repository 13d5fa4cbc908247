"""How long it takes until work goes on after a loss: a worker killed with -9, Redis emptied, Redis restarted.

Real workers with a runner that only waits, at the settings of the fault suite: heartbeat 2 s, lease 6 s, reaper 2 s.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import submit

from benchmarks.place import Place
from benchmarks.row import Row
from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, open_installation

_LEASE_SEC, _BEAT_SEC = 6.0, 2.0
_KILL_LIMIT_SEC = _LEASE_SEC + 4
_BROKER_LIMIT_SEC = 10.0
_ELSEWHERE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""As on another machine: nobody sees that the process is gone, only its lease tells."""
_HELD = 4


async def measure(place: Place) -> list[Row]:
    with PostgresServer() as server, RedisServer() as broker:
        times = place.count(5, 1)
        url = await server.create_database("recovery")
        setup = _setup(place, url, broker.url)
        async with open_installation(setup.settings()) as installation:
            killed = [await _after_kill(installation, setup) for _ in range(times)]
            flushed = [await _after(installation, setup, lambda: _flush(broker)) for _ in range(times)]
            restarted = [await _after(installation, setup, lambda: _restart(broker)) for _ in range(times)]
    return [
        _row(f"kill -9 of a worker until its {_HELD} trials run elsewhere", killed, _KILL_LIMIT_SEC),
        _row("Redis emptied with 20 trials queued until the next begins", flushed, _BROKER_LIMIT_SEC),
        _row("Redis restarted with 20 trials queued until the next begins", restarted, _BROKER_LIMIT_SEC),
    ]


def _setup(place: Place, url: str, broker_url: str) -> Setup:
    folder = place.folder("recovery")
    return Setup(
        home=str(folder / "home"),
        diary=str(folder / "diary"),
        gate=str(folder / "gate-{job}"),
        database_url=url,
        broker_url=broker_url,
        capacity=_HELD,
        lease_sec=_LEASE_SEC,
        heartbeat_sec=_BEAT_SEC,
        reap_sec=_BEAT_SEC,
    )


def _row(what: str, seconds: Sequence[float], limit: float) -> Row:
    slowest = max(seconds)
    return Row(what, f"at most {slowest:.1f} s of {len(seconds)}", f"<= {limit:g} s", slowest <= limit)


async def _after_kill(installation: Installation, setup: Setup) -> float:
    with _worker(setup, _ELSEWHERE) as dies:
        job = await submit(installation, _HELD)
        begun = await _begun(setup, _HELD)
        with _worker(setup, ()):
            await asyncio.sleep(_LEASE_SEC + _BEAT_SEC)  # a new worker trusts no lease at first
            dies.end()
            at = time.monotonic()
            await _begun(setup, begun + _HELD)
            took = time.monotonic() - at
            await _let_end(installation, setup, job.id)
    return took


async def _after(installation: Installation, setup: Setup, harm: Callable[[], Awaitable[None]]) -> float:
    """The trials in flight end at the moment of the harm, so that the others could begin."""
    with _worker(setup, ()):
        job = await submit(installation, 20)
        begun = await _begun(setup, _HELD)
        await harm()
        at = time.monotonic()
        _open(setup, job.id)
        await _begun(setup, begun + 1)
        took = time.monotonic() - at
        await _let_end(installation, setup, job.id)
    return took


async def _flush(broker: RedisServer) -> None:
    await asyncio.to_thread(broker.command, "FLUSHALL")


async def _restart(broker: RedisServer) -> None:
    await asyncio.to_thread(broker.stop)
    await asyncio.sleep(1)
    await asyncio.to_thread(broker.start)


@contextmanager
def _worker(setup: Setup, around: Sequence[str]) -> Iterator[FakeWorker]:
    worker = FakeWorker.start(setup, around)
    try:
        yield worker
    finally:
        worker.end()


async def _begun(setup: Setup, count: int) -> int:
    """Waits until this many tries have begun; the diary is emptied after each job."""
    async with asyncio.timeout(120):
        while (found := _lines(setup)) < count:
            await asyncio.sleep(0.02)
    return found


def _lines(setup: Setup) -> int:
    diary = Path(setup.diary)
    return len(diary.read_text().splitlines()) if diary.exists() else 0


def _open(setup: Setup, job_id: int) -> None:
    Path(setup.gate.format(job=job_id)).touch()


async def _let_end(installation: Installation, setup: Setup, job_id: int) -> None:
    _open(setup, job_id)
    async with asyncio.timeout(120):
        while (await installation.store.jobs.get(job_id)).ended_at is None:
            await asyncio.sleep(0.05)
    Path(setup.diary).unlink()
