"""How many trials a second a fleet can dispatch: worker processes with a runner that does nothing, on PostgreSQL and
Redis. Also the cost of a trial with a thousand and with a million trials in the store.

``python -m benchmarks.dispatch worker SETTINGS CAPACITY`` is one of its worker processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.full_store import fill, multiply
from benchmarks.homes import submit
from benchmarks.place import ROOT, TRIVIAL, Place
from benchmarks.row import Row
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.domain.job import Job
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, assemble_worker, open_installation

_LEAST_RATE = 300.0
_FLAT = 0.2
_WORKERS = (1, 2, 4)
_IN_FLIGHT = 40
_FILES = {"result.json": b"{}" * 500, "verifier/test-stdout.txt": b"ok\n" * 100}
_PIECE, _ROUNDS = 200, 7
_TEMPLATE = 200
_WARM = 50
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What one trial took: by the clock, and of the processors by workers and by the database's server."""

    rate: float
    worker_ms: float
    server_ms: float


async def measure(place: Place) -> list[Row]:
    """The curve over workers, on servers of its own."""
    trials = place.count(4000, 400)
    with PostgresServer() as server, RedisServer() as broker:
        settings = await _settings(place, server, broker, "dispatch")
        found = {count: await _dispatch(settings, server, count, trials) for count in _WORKERS}
    best = max(found, key=lambda count: found[count].rate)
    saturated = found[best].rate
    rows = [
        Row(
            f"dispatch with a fake runner, PostgreSQL and Redis, {count} worker{'s' * (count > 1)}",
            f"{one.rate:.0f} trials/s",
            f">= {_LEAST_RATE:g}/s" if count == best else "",
            one.rate >= _LEAST_RATE or count != best,
            f"{one.worker_ms:.2f} ms of CPU in workers, {one.server_ms:.2f} ms in PostgreSQL for each trial",
        )
        for count, one in found.items()
    ]
    cores = os.cpu_count() or 1
    most = 1000 * cores / found[best].server_ms
    note = f"one trial takes {found[best].server_ms:.2f} ms of PostgreSQL: with {cores} cores for it alone {most:.0f}/s"
    return [*rows, Row("where the store saturates", f"{saturated:.0f} trials/s, {best} workers", "", True, note)]


async def measure_growth(place: Place) -> list[Row]:
    """Processor time of workers and server for each trial, taken in turns in a small and in a large store."""
    few, many = 1_000, place.count(1_000_000, 20_000)
    with PostgresServer() as server, RedisServer() as broker:
        small = await _settings(place, server, broker, "small", few)
        large = await _settings(place, server, broker, "large", many)
        turns = range(place.count(_ROUNDS, 2) + 1)  # the first one warms up
        rounds = [[await _dispatch(one, server, 1, _PIECE) for one in (small, large)] for _ in turns]
        costs = [[one.worker_ms + one.server_ms for one in each] for each in zip(*rounds[1:], strict=True)]
    before, after = (statistics.median(each) for each in costs)
    return [
        Row(
            f"cost of a dispatched trial with {many:,} in the store, PostgreSQL and Redis",
            f"{after:.2f} ms of CPU",
            f"± {_FLAT:.0%}",
            abs(after / before - 1) <= _FLAT,
            f"with {few:,} in it {before:.2f} ms",
            after / before,
        )
    ]


async def _settings(place: Place, server: PostgresServer, broker: RedisServer, name: str, stored: int = 0) -> Settings:
    url = await server.create_database(f"bench_{name}")
    await upgrade(url)
    if stored:
        await fill(url, _TEMPLATE)
        await multiply(url, stored - _TEMPLATE)
    settings = Settings(
        _env_file=None,
        home=place.folder(name),
        cache=place.cache,
        database_url=url,
        broker_url=broker.url,
        sandbox="oci",
        disk_low_water_mb=0,
    )
    async with open_installation(settings) as installation:
        await installation.library.add(TRIVIAL)
    return settings


async def _dispatch(settings: Settings, server: PostgresServer, workers: int, trials: int) -> Dispatched:
    """The workers run before the jobs come and have run some trials, so that their start is not counted."""
    async with open_installation(settings) as installation:
        with _worker_processes(settings, workers) as pids:
            await _ended(installation, await submit(installation, TRIVIAL, _WARM * workers))
            before = _cpu_sec(pids), _cpu_sec(_server_pids(server))
            jobs = await submit(installation, TRIVIAL, trials)
            began = time.perf_counter()
            await _ended(installation, jobs)
            seconds = time.perf_counter() - began
            after = _cpu_sec(pids), _cpu_sec(_server_pids(server))
    per_trial = [1000 * (late - early) / trials for early, late in zip(before, after, strict=True)]
    return Dispatched(trials / seconds, *per_trial)


async def _ended(installation: Installation, jobs: Sequence[Job]) -> None:
    ids = [job.id for job in jobs]
    while any(count.queued + count.running for count in (await installation.store.jobs.counts(ids)).values()):
        await asyncio.sleep(0.1)
    counts = (await installation.store.jobs.counts(ids)).values()
    if sum(count.passed for count in counts) != sum(job.spec.attempts for job in jobs):
        raise RuntimeError(f"Not all trials passed: {list(counts)}")


@contextmanager
def _worker_processes(settings: Settings, count: int) -> Iterator[list[int]]:
    given = {name: str(getattr(settings, name)) for name in ("home", "cache", "database_url", "broker_url")}
    command = [sys.executable, "-m", "benchmarks.dispatch", "worker", json.dumps(given), str(_IN_FLIGHT)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("A worker did not start.")
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()


def _server_pids(server: PostgresServer) -> list[int]:
    """The server and its children. Those of connections that ended are counted in the server's own row."""
    (pid, *_) = (server.directory / "data" / "postmaster.pid").read_text().split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(pid), *map(int, children)]


def _cpu_sec(pids: Sequence[int]) -> float:
    """Of these processes and of their children that have ended."""
    spent = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        spent += sum(map(int, fields[11:15]))
    return spent / _TICKS


async def _work(settings: Settings, capacity: int) -> None:
    async with open_installation(settings, for_worker=True) as installation:
        worker = assemble_worker(installation, FakeRunner(files=_FILES), capacity)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.leave)
        working = asyncio.create_task(worker.run())
        sys.stdout.write("working\n")
        sys.stdout.flush()
        await working


def main() -> None:
    _, _, given, capacity = sys.argv
    settings = Settings(_env_file=None, sandbox="oci", disk_low_water_mb=0, **json.loads(given))
    asyncio.run(_work(settings, int(capacity)))


if __name__ == "__main__":
    main()
