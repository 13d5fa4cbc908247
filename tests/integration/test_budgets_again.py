"""A job from before the operator set a cap in dollars: its trials are not queued again without a price."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.jobs.control import JobControl
from seatrial.errors import InvalidInput
from seatrial.ports.store import TrialFilter
from seatrial.settings import Settings
from seatrial.testing.fake_runner import PASS
from seatrial.wiring import Installation, open_installation
from tests.command_line import SAMPLES

UNPRICED = "hosted_vllm/mine"
Again = Callable[[JobControl, int], Awaitable[object]]
WAYS: dict[str, tuple[Outcome, Again]] = {
    "resumed": (Outcome.CANCELLED, lambda jobs, job: jobs.resume(job)),
    "retried": (Outcome.CANCELLED, lambda jobs, job: jobs.retry(job)),
    "one retried": (Outcome.CANCELLED, lambda jobs, job: jobs.retry_trial(1)),
    "attempts added": (Outcome.PASSED, lambda jobs, job: jobs.add_attempts(job)),
}


@asynccontextmanager
async def installed(home: Path, **settings: object) -> AsyncIterator[Installation]:
    given = Settings(_env_file=None, home=home, **settings)  # type: ignore[call-arg, arg-type]
    async with open_installation(given, at_the_machine=True) as installation:
        yield installation


async def ended(installation: Installation, outcome: Outcome) -> Job:
    [task] = await installation.library.add(SAMPLES / "answer-file")
    agents = (AgentSpec(name="terminus-2", model=UNPRICED, options={"api_base": "http://127.0.0.1:9/v1"}),)
    job = await installation.submission.submit(
        JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=agents)
    )
    if outcome is Outcome.CANCELLED:
        await installation.jobs.cancel(job.id)
    else:
        from datetime import timedelta

        now, store = installation.clock(), installation.store
        [trial] = await store.trials.claim("worker", timedelta(hours=1), 1, now)
        await store.trials.finish(trial.id, trial.try_number, PASS, now)
    return job


async def queued(installation: Installation) -> int:
    rows = installation.store.trials.each(TrialFilter(states=(TrialState.QUEUED,)))
    return len([row async for row in rows])


@pytest.mark.parametrize(("outcome", "again"), WAYS.values(), ids=list(WAYS))
async def test_prices_are_checked_again(tmp_path: Path, outcome: Outcome, again: Again) -> None:
    async with installed(tmp_path) as before:
        job = await ended(before, outcome)
    async with installed(tmp_path, day_budget_usd=5.0) as capped:
        with pytest.raises(InvalidInput, match="no known price"):
            await again(capped.jobs, job.id)
        assert await queued(capped) == 0
    prices = tmp_path / "prices.json"
    prices.write_text(f'{{"{UNPRICED}": {{"input_cost_per_token": 1e-7, "output_cost_per_token": 1e-6}}}}')
    async with installed(tmp_path, day_budget_usd=5.0, model_prices_file=prices) as priced:
        await again(priced.jobs, job.id)
        assert await queued(priced) == 1
