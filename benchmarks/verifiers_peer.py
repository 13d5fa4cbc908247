"""Rollouts on verifiers' own docker runtime, graded as its Harbor taskset does it. Run by the Python of verifiers 0.4.

``python verifiers_peer.py IMAGE TASK COUNT AT_ONCE`` prints the seconds from the first start to the last stop.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from verifiers.v1.runtimes import DockerConfig, make_runtime
from verifiers.v1.tasksets.harbor.taskset import HarborData, HarborTask

SOLVE = "echo 42 > /app/answer.txt"


async def rollout(image: str, task: HarborTask) -> float:
    """One: start the container, one command, the tests, remove the container."""
    runtime = make_runtime(DockerConfig(image=image, workdir="/app", cpu=1, memory=2))
    try:
        await runtime.start()
        await runtime.prepare_setup()
        done = await runtime.run(["bash", "-c", SOLVE], {})
        assert done.exit_code == 0, done.stderr
        await task.stage_tests(runtime)
        unused = SimpleNamespace(record_metrics=lambda values: None)
        return float((await task.run_verifier(runtime, unused))["reward"])
    finally:
        await runtime.stop()


async def main(image: str, task_dir: Path, count: int, at_once: int) -> None:
    task = HarborTask(HarborData(name="trivial", prompt="Do it.", task_dir=str(task_dir)))
    gate = asyncio.Semaphore(at_once)

    async def one() -> float:
        async with gate:
            return await rollout(image, task)

    assert await rollout(image, task) == 1.0  # warm
    began = time.perf_counter()
    rewards = await asyncio.gather(*(one() for _ in range(count)))
    print(json.dumps({"seconds": time.perf_counter() - began, "solved": sum(rewards)}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
