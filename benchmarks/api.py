"""What the API costs with a full store: lists, creation of large jobs, and a mix of reads while trials run.

Beside each time stands the server's processor time for one request: the steadier number where other things run too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import httpx
from tests.live_processes import api_process, settings_of, submit, worker_process

from benchmarks.full_store import TASKS, TRIALS_OF_A_JOB, fill
from benchmarks.place import Place
from benchmarks.row import Row, shown
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.testing.postgres import PostgresServer
from seatrial.wiring import open_installation

_STORED = 100_000
_PAGE_LIMIT_SEC = 0.05
_CREATE_LIMIT_SEC = 2.0
_READS_PER_SEC = 200
_READS_LIMIT_SEC = 0.2
_RUNNING = 100
_TRIAL_SEC, _LINE_SEC = 20.0, 1.0
"""Five trials a second end and begin, and each says something every second: busier than agents that wait for models."""
_GROWTH_MB = 16.0
_DATABASE = "SEATRIAL_DATABASE_URL"


async def measure_lists(place: Place) -> list[Row]:
    """Every page of a kind once or more, each measured; the server's memory before and after."""
    rows: list[Row] = []
    stored = place.count(_STORED, 10_000)
    async for kind, home in _homes(place):
        jobs = await fill(_url(home), stored)
        with api_process(home) as (address, process):
            async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
                for what, paths in _pages(jobs).items():
                    name = f"{what}, {stored:,} trials, {kind}"
                    rows.append(await _paced(http, process, name, paths, place.count(300, 40)))
                rows.append(await _growth(http, process, kind, jobs, place.count(2000, 200)))
    return rows


def _pages(jobs: int) -> dict[str, Callable[[int], str]]:
    return {
        "job list": lambda n: f"/api/v1/jobs?cursor={jobs + 1 - n % max(1, jobs - 50)}",
        "job list with scores": lambda n: f"/api/v1/jobs?include=score&cursor={jobs + 1 - n % max(1, jobs - 50)}",
        "job list, one status": lambda n: f"/api/v1/jobs?status=completed&cursor={jobs + 1 - n % max(1, jobs - 50)}",
        "trial page of a job": lambda n: f"/api/v1/jobs/{1 + n % jobs}/trials",
        "trial page of all": lambda n: f"/api/v1/trials?cursor={1 + (n * 997) % (jobs * TRIALS_OF_A_JOB)}",
        "trial page, one outcome": lambda n: f"/api/v1/trials?outcome=error&cursor={(n * 997) % 90_000 + 500}",
        "trial page, one task": lambda n: f"/api/v1/trials?task=task-{n % TASKS:05d}",
        "trial": lambda n: f"/api/v1/trials/{1 + (n * 997) % (jobs * TRIALS_OF_A_JOB)}",
    }


async def measure_create(place: Place) -> list[Row]:
    """Two shapes of ten thousand trials: many attempts at few tasks, and many tasks."""
    rows: list[Row] = []
    trials = place.count(10_000, 1_000)
    async for kind, home in _homes(place):
        await fill(_url(home), place.count(_STORED, 10_000))
        wanted = {"selection": {"limit": TASKS}, "attempts": trials // TASKS}
        with api_process(home) as (address, _):
            async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
                took = [await _created(http, wanted, trials) for _ in range(place.count(5, 2))]
        slowest = max(took)
        rows.append(
            Row(
                f"create a job of {trials:,} trials, {kind}",
                f"{shown(statistics.median(took))}, at most {shown(slowest)}",
                f"< {_CREATE_LIMIT_SEC:g} s",
                slowest < _CREATE_LIMIT_SEC,
            )
        )
    return rows


async def _created(http: httpx.AsyncClient, wanted: dict[str, object], trials: int) -> float:
    began = time.perf_counter()
    answer = await http.post("/api/v1/jobs", json=wanted)
    took = time.perf_counter() - began
    if answer.status_code != 201 or answer.json()["counts"]["total"] != trials:
        raise RuntimeError(answer.text[:500])
    (await http.post(f"/api/v1/jobs/{answer.json()['id']}/cancel")).raise_for_status()
    return took


async def measure_reads(place: Place) -> list[Row]:
    """Requests leave at a fixed pace, whether or not earlier ones were answered; trials run in another process."""
    rows: list[Row] = []
    seconds = place.count(20, 4)
    async for kind, home in _homes(place):
        jobs = await fill(_url(home), place.count(_STORED, 10_000))
        async with open_installation(settings_of(home)) as installation:
            running = await submit(installation, _RUNNING * 5)
        with api_process(home) as (address, process), worker_process(home, _TRIAL_SEC, _RUNNING, _LINE_SEC):
            async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
                await _until_running(http, running.id)
            # A client that costs little: on a small machine it would else take the server's time.
            async with aiohttp.ClientSession(address, connector=aiohttp.TCPConnector(limit=64)) as http:
                cpu = _cpu_sec(process)
                took = await _at_pace(http, _mix(jobs, running.id), _READS_PER_SEC, seconds)
                each = (_cpu_sec(process) - cpu) / len(took)
        p99 = _share(took, 0.99)
        rows.append(
            Row(
                f"{_READS_PER_SEC} mixed reads/s, {_RUNNING} trials running, {kind}",
                f"p50 {shown(_share(took, 0.5))}, p99 {shown(p99)} ({shown(each)} of CPU)",
                f"p99 < {_READS_LIMIT_SEC * 1000:g} ms",
                p99 < _READS_LIMIT_SEC,
            )
        )
    return rows


def _mix(jobs: int, running: int) -> Callable[[int], str]:
    paths: list[Callable[[int], str]] = [
        lambda n: "/api/v1/jobs",
        lambda n: f"/api/v1/jobs/{running}",
        lambda n: f"/api/v1/jobs/{running}/trials",
        lambda n: f"/api/v1/jobs/{1 + n % jobs}",
        lambda n: f"/api/v1/jobs/{1 + n % jobs}/trials",
        lambda n: f"/api/v1/trials/{1 + (n * 997) % (jobs * TRIALS_OF_A_JOB)}",
        lambda n: "/api/v1/queue",
        lambda n: "/api/v1/tasks",
        lambda n: "/api/v1/agents",
        lambda n: "/health",
    ]
    return lambda n: paths[n % len(paths)](n)


async def _until_running(http: httpx.AsyncClient, job_id: int) -> None:
    async with asyncio.timeout(60):
        while (await http.get(f"/api/v1/jobs/{job_id}")).json()["counts"]["running"] < _RUNNING // 2:
            await asyncio.sleep(0.1)


async def _at_pace(http: aiohttp.ClientSession, path: Callable[[int], str], rate: int, seconds: int) -> list[float]:
    """Counted from when each was due, so that a stall is not hidden by those it kept from being sent."""
    took: list[float] = []
    loop = asyncio.get_running_loop()
    began = loop.time() + 0.1

    async def ask(number: int) -> None:
        due = began + number / rate
        await asyncio.sleep(due - loop.time())
        async with http.get(path(number)) as answer:
            answer.raise_for_status()
            await answer.read()
        took.append(loop.time() - due)

    await asyncio.gather(*(ask(number) for number in range(rate * seconds)))
    return took


async def _paced(http: httpx.AsyncClient, process: int, what: str, path: Callable[[int], str], times: int) -> Row:
    took, cpu = [], _cpu_sec(process)
    for number in range(times):
        began = time.perf_counter()
        (await http.get(path(number))).raise_for_status()
        took.append(time.perf_counter() - began)
    p95 = _share(took, 0.95)
    each = (_cpu_sec(process) - cpu) / times
    measured = f"p50 {shown(_share(took, 0.5))}, p95 {shown(p95)} ({shown(each)} of CPU)"
    return Row(what, measured, f"p95 < {_PAGE_LIMIT_SEC * 1000:g} ms", p95 < _PAGE_LIMIT_SEC)


async def _growth(http: httpx.AsyncClient, process: int, kind: str, jobs: int, times: int) -> Row:
    pages = list(_pages(jobs).values())
    for number, page in zip(range(times // 4), itertools.cycle(pages), strict=False):
        (await http.get(page(number))).raise_for_status()
    before = _resident_mb(process)
    for number, page in zip(range(times), itertools.cycle(pages), strict=False):
        (await http.get(page(number))).raise_for_status()
    grown = _resident_mb(process) - before
    return Row(
        f"API memory over {times:,} pages, {kind}",
        f"{before:.0f} MB, then {grown:+.1f} MB",
        f"< +{_GROWTH_MB:g} MB",
        grown < _GROWTH_MB,
    )


def _cpu_sec(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(process: int) -> float:
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _share(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def _homes(place: Place) -> AsyncIterator[tuple[str, Path]]:
    """An upgraded, empty installation on each database. Processes that are started meanwhile use it."""
    for kind in ("SQLite", "PostgreSQL"):
        home = place.folder("home")
        async with _database(kind, home) as url:
            await upgrade(url)
            with _in_environment(url if kind == "PostgreSQL" else ""):
                yield kind, home


@asynccontextmanager
async def _database(kind: str, home: Path) -> AsyncIterator[str]:
    if kind == "SQLite":
        yield settings_of(home).store_url
        return
    with PostgresServer() as server:
        yield await server.create_database("bench")


@contextmanager
def _in_environment(url: str) -> Iterator[None]:
    before = os.environ.pop(_DATABASE, None)
    if url:
        os.environ[_DATABASE] = url
    try:
        yield
    finally:
        os.environ.pop(_DATABASE, None)
        if before is not None:
            os.environ[_DATABASE] = before


def _url(home: Path) -> str:
    return settings_of(home).store_url
