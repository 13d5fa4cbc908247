"""A hint that there is work: quick within a process, soon between processes, never lost between two waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from seatrial.adapters.wake_up_celery.wake_up import CeleryWakeUp
from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.adapters.wake_up_postgres import PostgresWakeUp
from seatrial.ports.wake_up import WakeUp
from seatrial.testing.redis import RedisServer
from tests.databases import postgres_databases, postgres_server  # noqa: F401
from tests.waiting import LIMIT_SEC

Opener = Callable[[], WakeUp]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["local", pytest.param("postgres", marks=pytest.mark.postgres), "celery"])
async def open_wake_up(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens the same wake-up once more, as another process would."""
    opened: list[WakeUp] = []
    if request.param == "postgres":
        url = await request.getfixturevalue("postgres_databases").empty()
    elif request.param == "celery":
        server: RedisServer = request.getfixturevalue("redis_server")
        server.command("FLUSHALL")
        url = server.url

    def another() -> WakeUp:
        match request.param:
            case "local":
                opened.append(LocalWakeUp(tmp_path))
            case "postgres":
                opened.append(PostgresWakeUp(url, patience_sec=LIMIT_SEC))
            case _:
                opened.append(CeleryWakeUp(url, worker=f"machine:{len(opened)}", patience_sec=LIMIT_SEC))
        return opened[-1]

    yield another
    for one in opened:
        await one.close()


@pytest.fixture
def wake_up(open_wake_up: Opener) -> WakeUp:
    return open_wake_up()


async def waited(wake_up: WakeUp, timeout: float) -> float:
    start = time.monotonic()
    await wake_up.wait(timeout)
    return time.monotonic() - start


async def quiet(wake_up: WakeUp) -> None:
    """Waits until nothing is left that would wake it. A new connection may wake it once."""
    for _ in range(5):
        if await waited(wake_up, 0.25) >= 0.25:
            return
    raise AssertionError("it is woken again and again")


async def woken(wake_up: WakeUp) -> None:
    """An hour is long enough: only an announcement ends this wait."""
    await asyncio.wait_for(wake_up.wait(3600), LIMIT_SEC)


async def test_without_an_announcement_it_waits_to_the_end(wake_up: WakeUp) -> None:
    await quiet(wake_up)
    await asyncio.wait_for(wake_up.wait(0), LIMIT_SEC)


async def test_an_announcement_wakes_a_waiting_worker(wake_up: WakeUp) -> None:
    await quiet(wake_up)
    waiting = asyncio.create_task(woken(wake_up))
    await wake_up.announce()
    await waiting


async def test_an_announcement_between_two_waits_is_not_lost(wake_up: WakeUp) -> None:
    await quiet(wake_up)
    await wake_up.announce()
    await woken(wake_up)


async def test_announcements_are_used_up(wake_up: WakeUp) -> None:
    """Each wakes a worker once at most."""
    await quiet(wake_up)
    await wake_up.announce()
    await wake_up.announce()
    await woken(wake_up)
    await quiet(wake_up)


async def test_another_one_wakes_this_one(open_wake_up: Opener) -> None:
    here, there = open_wake_up(), open_wake_up()
    await quiet(here)
    waiting = asyncio.create_task(woken(here))
    await there.announce()
    await waiting


async def test_another_process_wakes_this_one(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from seatrial.adapters.wake_up_local import LocalWakeUp\n"
        "asyncio.run(LocalWakeUp(Path(sys.argv[1])).announce())"
    )
    wake_up = LocalWakeUp(tmp_path)
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
