"""Trials per second through the store alone: claim → phases → finish with all events, no runner and no sandbox.

``python -m benchmarks.store [--trials 100 10000] [--url …] [--json]``. Each size gets a store of its own, filled with
one job. Processor time per trial is the steadier number where other things run beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import PhaseTiming, Result, StoredFile, TestResult, TestStatus
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome, Phase, Trial
from seatrial.ports.store import PhaseEntry, Store

LEASE = timedelta(minutes=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RESULT = Result(
    outcome=Outcome.PASSED,
    rewards={"reward": 1.0},
    tests=tuple(TestResult(name=f"test_{number}", status=TestStatus.PASSED) for number in range(5)),
    timings=tuple(PhaseTiming(phase=phase, started_at=NOW, seconds=1.0) for phase in Phase),
    files=tuple(StoredFile(path=f"logs/{number}.txt", size=1000) for number in range(8)),
    seconds=7.0,
)


@dataclass(frozen=True, slots=True)
class Measured:
    trials: int
    create_seconds: float
    trials_per_second: float
    cpu_ms_per_trial: float


async def measure(url: str, trials: int, in_flight: int = 40) -> Measured:
    """One job of ``trials`` through an upgraded store, ``in_flight`` at a time."""
    refs = tuple(TaskRef(name=f"task-{number}", digest=f"sha256:{number:064x}") for number in range(trials))
    spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),))
    async with SqlStore.at(url) as store:
        started = time.perf_counter()
        await store.jobs.create(spec, tuple(plan(spec)), NOW)
        created = time.perf_counter()
        cpu = time.process_time()
        done = await _work_off(store, in_flight)
        cpu, ended = time.process_time() - cpu, time.perf_counter()
    assert done == trials
    return Measured(
        trials=trials,
        create_seconds=created - started,
        trials_per_second=trials / (ended - created),
        cpu_ms_per_trial=cpu / trials * 1000,
    )


async def _work_off(store: Store, in_flight: int) -> int:
    done = 0

    async def finish(trial: Trial) -> None:
        await store.trials.finish(trial.id, trial.try_number, RESULT, NOW)

    while claimed := await store.trials.claim("bench", LEASE, in_flight, NOW):
        await store.trials.enter_phases(
            [
                PhaseEntry(trial_id=trial.id, job_id=trial.job_id, try_number=trial.try_number, phase=phase, at=NOW)
                for phase in Phase
                for trial in claimed
            ]
        )
        await asyncio.gather(*map(finish, claimed))
        done += len(claimed)
    return done


async def run(sizes: list[int], url: str | None) -> list[Measured]:
    found = []
    for trials in [min(sizes), *sizes]:  # the first round warms up
        with tempfile.TemporaryDirectory() as scratch:
            address = url or f"sqlite:///{scratch}/seatrial.db"
            await upgrade(address)
            found.append(await measure(address, trials))
    return found[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--url", help="a PostgreSQL database to use instead of SQLite files")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(run(options.trials, options.url))
    if options.json:
        print(json.dumps([asdict(measured) for measured in found]))
        return
    print(f"{'trials':>8} {'create s':>9} {'trials/s':>9} {'cpu ms/trial':>13}")
    for row in found:
        print(f"{row.trials:>8} {row.create_seconds:>9.3f} {row.trials_per_second:>9.0f} {row.cpu_ms_per_trial:>13.2f}")


if __name__ == "__main__":
    main()
