"""Rollouts for trainers: what Seatrial adds to one while 64 are in flight, and how many a second against verifiers' own
docker runtime.

Three numbers, all for the trivial task: one command, then the task's tests.

- *Overhead*: 64 rollouts are in flight all the time; each thinks for 8 s on average, as a model would, and another
  begins when it ends. Counted is the time that one spends inside ``open`` and ``grade``, as its caller sees it: waiting
  for the processor included, the tests' own few milliseconds too, thinking and the command not.
- *Burst*: 64 begin at the same instant and think about nothing. Wall time from the first start to the last verdict,
  divided by 64.
- *Rate*: rollouts per second at full speed, each side with as many at once as suits it; the peer's containers are
  started, used, graded and removed by verifiers itself, in its own process and Python.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from tests.engine import shared_engine
from tests.verifiers.generations import virtual_environment

from benchmarks.place import ROOT, TRIVIAL, Place
from benchmarks.row import Row, faster, shown
from seatrial.domain.task import TaskSelection
from seatrial.rollouts.host import RolloutHost
from seatrial.rollouts.images import EngineImages
from seatrial.rollouts.tasks import FoundTask, TaskFinder
from seatrial.rollouts.trials import RolloutRules
from seatrial.settings import Settings

IN_FLIGHT = 64
SOLVE = "echo 42 > /app/answer.txt"
_PEER = Path(__file__).with_name("verifiers_peer.py")
_THINKING_SEC = 8.0
_PROMISED_SEC = 0.5
_PROMISED_RATIO = 5.0
_PEER_AT_ONCE = 16


async def measure(place: Place) -> list[Row]:
    settings = Settings(home=place.folder("home"), cache=place.cache)
    task = _trivial(place, settings)
    async with RolloutHost(settings, RolloutRules(sandbox="oci")) as host:
        await _solve(host, task)  # warm
        rows = [await _overhead(place, host, task)]
        burst = await _burst(host, task)
        rows.append(burst)
        rate = await _rate(place, host, task)
    peer = await asyncio.to_thread(_peer_rate, place, settings, task)
    what = f"rollouts per second, oci, {IN_FLIGHT} at once"
    rows.append(faster(what, rate, f"verifiers' docker runtime, {_PEER_AT_ONCE} at once", peer, _PROMISED_RATIO))
    return rows


async def _overhead(place: Place, host: RolloutHost, task: FoundTask) -> Row:
    chance = random.Random(1)
    spent: list[float] = []
    lost: list[BaseException] = []

    async def one(first_pause: float) -> None:
        await asyncio.sleep(first_pause)
        for _ in range(place.count(4, 1)):
            began = time.perf_counter()
            try:
                rollout = await host.open(task)
                opened = time.perf_counter() - began
                await asyncio.sleep(chance.uniform(0.5, 1.5) * _THINKING_SEC)
                await rollout.execute_commands([SOLVE])
                began = time.perf_counter()
                assert (await rollout.grade()).passed
            except Exception as error:
                lost.append(error)
            else:
                spent.append(opened + time.perf_counter() - began)

    await asyncio.gather(*(one(chance.uniform(0, _THINKING_SEC)) for _ in range(IN_FLIGHT)))
    median = statistics.median(spent)
    return Row(
        f"set-up and grading of one rollout of {IN_FLIGHT} in flight, median of {len(spent)}",
        f"{shown(median)}, {len(lost)} lost",
        f"< {_PROMISED_SEC:g} s, 0 lost",
        median < _PROMISED_SEC and not lost,
    )


async def _burst(host: RolloutHost, task: FoundTask) -> Row:
    began = time.perf_counter()
    done = await asyncio.gather(*(_solve(host, task) for _ in range(IN_FLIGHT)), return_exceptions=True)
    each = (time.perf_counter() - began) / IN_FLIGHT
    lost = sum(score != 1.0 for score in done)
    return Row(
        f"{IN_FLIGHT} rollouts begun at the same instant, wall time for each",
        f"{shown(each)}, {lost} lost",
        f"< {_PROMISED_SEC:g} s, 0 lost",
        each < _PROMISED_SEC and not lost,
    )


async def _rate(place: Place, host: RolloutHost, task: FoundTask) -> float:
    count = IN_FLIGHT * place.count(4, 1)
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with gate:
            assert await _solve(host, task) == 1.0

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    return count / (time.perf_counter() - began)


async def _solve(host: RolloutHost, task: FoundTask) -> float:
    rollout = await host.open(task)
    try:
        await rollout.execute_commands([SOLVE])
        return (await rollout.grade()).score
    finally:
        await rollout.close()


def _peer_rate(place: Place, settings: Settings, task: FoundTask) -> float:
    count = place.count(48, _PEER_AT_ONCE)
    python = virtual_environment("v04") / "bin" / "python"
    with shared_engine(place.folder("engine")) as engine:
        there = settings.model_copy(update={"docker_host": engine.host})
        image = EngineImages(there).image(task).tag
        done = subprocess.run(
            # -P: without the script's folder on its path, where this very file would be taken for verifiers
            [python, "-P", _PEER, image, task.directory, str(count), str(_PEER_AT_ONCE)],
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": str(place.scratch),
                "DOCKER_HOST": engine.host,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["solved"] == count
    return count / float(told["seconds"])


def _trivial(place: Place, settings: Settings) -> FoundTask:
    """The trivial task on an image that has Python: verifiers' docker runtime wants one in the container, or fetches
    another image for each start."""
    task = place.folder("rollout") / "trivial"
    shutil.copytree(TRIVIAL, task)
    for name in ("Dockerfile", "app"):
        source = ROOT / "samples" / "mend-a-script" / name
        target = task / "environment" / name
        target.unlink(missing_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    [found] = TaskFinder(settings).in_place(task, TaskSelection()).tasks
    return found
