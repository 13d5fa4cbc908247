"""How long a command takes in a sandbox that runs already, against the same shell on the host."""

from __future__ import annotations

import statistics
import subprocess
import time

from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, shown
from seatrial.sandboxes.oci.environment import OciEnvironment

_LIMIT_SEC = 0.015


async def measure(place: Place) -> list[Row]:
    count = place.count(200, 30)
    sandbox = _sandbox(place)
    await sandbox.start(force_build=False)
    try:
        ours = []
        bare = []
        for _ in range(count):
            started = time.perf_counter()
            result = await sandbox.exec("true")
            ours.append(time.perf_counter() - started)
            assert result.return_code == 0
            started = time.perf_counter()
            subprocess.run(["/bin/bash", "-c", "true"], check=True)
            bare.append(time.perf_counter() - started)
    finally:
        await sandbox.stop(delete=True)
    middle, peer = statistics.median(ours), statistics.median(bare)
    return [
        Row(
            f"exec round trip, oci (median of {count})",
            shown(middle),
            f"< {shown(_LIMIT_SEC)}",
            middle < _LIMIT_SEC,
            f"the same shell on the host {shown(peer)}",
            middle / peer,
        )
    ]


def _sandbox(place: Place) -> OciEnvironment:
    paths = TrialPaths(trial_dir=place.folder("round-trip"))
    paths.mkdir()
    return OciEnvironment(
        environment_dir=TRIVIAL / "environment",
        environment_name="round-trip",
        session_id="round-trip__env",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(cpus=1, memory_mb=512),
        options=place.options().model_dump(mode="json"),
        owner={"install": place.install, "trial": 1, "try_number": 1},
    )
