"""Nothing stays behind: after a stop, a failed start, and the sudden death of the owner. What is not ours stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.contracts.sandbox.kinds import Kind, Place, Wish
from tests.waiting import LIMIT_SEC, eventually

_ROOT = Path(__file__).parents[3]


async def _start_owner(kind: Kind, place: Place, install: str, *, grading: bool) -> asyncio.subprocess.Process:
    order = {
        "kind": kind.name,
        "directory": str(place.directory / install),
        "cache": str(place.cache),
        "engine": place.engine.host if place.engine else "",
        "install": install,
        "grading": grading,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.contracts.sandbox.owner",
        json.dumps(order),
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), LIMIT_SEC) == b"ready\n"
    return process


async def _swept(kind: Kind, place: Place) -> None:
    """Workers of other tests sweep the same cache and engine. One of them may be removing this one at the moment."""

    async def is_swept() -> bool:
        await kind.sweep(place)
        return await kind.traces(place) == []

    await eventually(is_swept, "a sweep leaves nothing")


async def test_stop_leaves_nothing(kind: Kind, place: Place) -> None:
    mine = Place(place.directory / "stop", place.cache, place.engine)
    sandbox = kind.create(mine, Wish())
    await sandbox.start(force_build=False)
    await sandbox.exec("sleep 600 >/dev/null 2>&1 &")
    await sandbox.exec("mkdir -p /logs/verifier")
    await sandbox.upload_dir(source_dir=_ROOT / "tests" / "contracts", target_dir="/tests")
    assert await kind.traces(mine)
    await sandbox.stop(delete=True)
    assert await kind.traces(mine) == []
    await sandbox.stop(delete=True)


async def test_failed_start_leaves_nothing(kind: Kind, place: Place) -> None:
    mine = Place(place.directory / "failed", place.cache, place.engine)
    sandbox = kind.create(mine, Wish(dockerfile="FROM debian:bookworm-slim\nRUN exit 3\n"))
    with pytest.raises(Exception, match=r"3|build"):
        await sandbox.start(force_build=False)
    await sandbox.stop(delete=True)
    assert await kind.traces(mine) == []


async def test_cancelled_start_leaves_nothing(kind: Kind, place: Place) -> None:
    for delay in (0.01, 0.05, 0.15, 0.3):
        mine = Place(place.directory / f"cancelled{delay}", place.cache, place.engine)
        sandbox = kind.create(mine, Wish())
        starting = asyncio.create_task(sandbox.start(force_build=False))
        await asyncio.sleep(delay)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await sandbox.stop(delete=True)
        assert await kind.traces(mine) == [], delay


@pytest.mark.parametrize("grading", [False, True], ids=["agent", "grading"])
async def test_killed_owner_leaves_nothing_after_a_sweep(kind: Kind, place: Place, grading: bool) -> None:
    install = f"killed{os.getpid()}{int(grading)}"
    mine = Place(place.directory / install, place.cache, place.engine, install=install)
    owner = await _start_owner(kind, place, install, grading=grading)
    assert await kind.traces(mine)
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    await _swept(kind, mine)


async def test_sweep_leaves_the_living_alone(kind: Kind, place: Place) -> None:
    install = f"living{os.getpid()}"
    mine = Place(place.directory / install, place.cache, place.engine, install=install)
    owner = await _start_owner(kind, place, install, grading=False)
    try:
        before = await kind.traces(mine)
        await kind.sweep(mine)
        assert await kind.traces(mine) == before
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
        await _swept(kind, mine)
