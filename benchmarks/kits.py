"""Set-up of an installed agent in an ``oci`` sandbox: from a ready kit, and by Harbor's own installation beside it.

The kit is built before the clock runs, as it is once per machine. Harbor's class installs into a sandbox with network;
where its sources cannot be reached, the row says so.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from pathlib import Path
from typing import Any

from harbor.agents.installed.mini_swe_agent import MiniSweAgent
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, shown
from seatrial.agents.kits.fitting import FittedKit
from seatrial.agents.kits.recipes import RECIPES
from seatrial.agents.kits.shelf import KitShelf
from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.settings import package_environment

AGENT = "mini-swe-agent"
_MOST_SEC = 0.5
_TIMES = 20.0
_PATIENCE_SEC = 600.0


async def measure(place: Place) -> list[Row]:
    shelf = KitShelf(place.options().kits_dir, package_environment())
    ready = await shelf.get(AGENT)
    taken = [await _set_up(place, FittedKit(RECIPES[AGENT], ready)) for _ in range(place.count(10, 2))]
    seconds = statistics.median(taken)
    peer, ratio = await _beside_harbor(place, seconds)
    met = seconds <= _MOST_SEC and (ratio is None or ratio >= _TIMES)
    what = f"set-up of {AGENT} in a sandbox, from a ready kit"
    return [Row(what, shown(seconds), f"<= {_MOST_SEC:g} s and >= {_TIMES:g} ×", met, peer, ratio)]


async def _set_up(place: Place, kit: FittedKit | None, *, online: bool = False) -> float:
    sandbox, agent = _sandbox(place, online=online), _agent(place)
    if kit is not None:
        kit.hand_to(agent)
    await sandbox.start(force_build=False)
    try:
        began = time.monotonic()
        await agent.setup(sandbox)
        return time.monotonic() - began
    finally:
        await sandbox.stop(delete=True)


async def _beside_harbor(place: Place, seconds: float) -> tuple[str, float | None]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE_SEC):
            harbors = await _set_up(place, None, online=True)
    except Exception as problem:
        failed = f"failed after {shown(time.monotonic() - began)}: {' '.join(str(problem).split())[-120:]}"
        return f"Harbor's own installation cannot run here, it {failed}", None
    return f"Harbor's own installation {shown(harbors)}", harbors / seconds


def _agent(place: Place) -> Any:
    return MiniSweAgent(logs_dir=place.folder("logs"), model_name="openai/none")


def _sandbox(place: Place, *, online: bool) -> OciEnvironment:
    paths = TrialPaths(trial_dir=place.folder("trial"))
    paths.mkdir()
    mode = NetworkMode.PUBLIC if online else NetworkMode.NO_NETWORK
    return OciEnvironment(
        environment_dir=Path(TRIVIAL) / "environment",
        environment_name=TRIVIAL.name,
        session_id=f"{uuid.uuid4().hex[:8]}__env",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(cpus=1, memory_mb=2048),
        network_policy=NetworkPolicy(network_mode=mode),
        options=place.options().model_dump(mode="json"),
        owner={"install": place.install, "trial": 1, "try_number": 1},
    )
