"""One set of trials with everything that can go wrong with numbers: errors of us and of the agent, cancellations,
retried errors, an added attempt, unknown costs, two configurations. ``numbers.json`` has what they come to, worked out
by hand where a hand can."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.ports.store import Store

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=1)
OUTCOMES = {
    # One letter for each attempt: passed, failed, sandbox error, agent error, cancelled, or R: an LLM error that was
    # retried and then passed.
    "alpha": {"a": "PPP", "b": "PFR", "c": "FFF", "d": "PSC"},
    "beta": {"a": "PFF", "b": "FFF", "c": "AFP", "d": "SSS"},
}
USAGE = {
    "alpha": Usage(input_tokens=1000, cached_tokens=400, output_tokens=100, cost_usd=0.10),
    "beta": Usage(input_tokens=500, output_tokens=50),
}
SPEC = JobSpec(
    name="golden",
    tasks=tuple(TaskRef(name=name, digest=f"sha256:{index:064x}") for index, name in enumerate("abcd")),
    agents=(AgentSpec(name="beta"), AgentSpec(name="alpha")),
    attempts=3,
)


async def record(store: Store) -> Job:
    """Runs the stories in this store."""
    job = await store.jobs.create(SPEC, tuple(plan(SPEC)), NOON)
    retried = [
        (trial, await _first_try(store, trial))
        for trial in await store.trials.claim("w", LEASE, 100, NOON, job_id=job.id)
    ]
    await store.jobs.retry_trials([trial.id for trial, letter in retried if letter == "R"], NOON)
    for trial in await store.trials.claim("w", LEASE, 100, NOON, job_id=job.id):
        await store.trials.finish(trial.id, trial.try_number, _result(trial, "P"), NOON)
    [failed] = [trial.id for trial, _ in retried if (trial.agent, trial.task.name, trial.attempt) == ("alpha", "b", 2)]
    await store.jobs.add_attempts([failed], NOON)
    for trial in await store.trials.claim("w", LEASE, 100, NOON, job_id=job.id):
        await store.trials.finish(trial.id, trial.try_number, _result(trial, "P"), NOON)
    return await store.jobs.get(job.id)


async def _first_try(store: Store, trial: Trial) -> str:
    letter = OUTCOMES[trial.agent][trial.task.name][trial.attempt - 1]
    await store.trials.finish(trial.id, trial.try_number, _result(trial, letter), NOON)
    return letter


def _result(trial: Trial, letter: str) -> Result:
    outcome, cause = {
        "P": (Outcome.PASSED, None),
        "F": (Outcome.FAILED, None),
        "S": (Outcome.ERROR, Cause.SANDBOX),
        "A": (Outcome.ERROR, Cause.AGENT),
        "R": (Outcome.ERROR, Cause.LLM),
        "C": (Outcome.CANCELLED, None),
    }[letter]
    silent = letter in "SC"
    return Result(
        outcome=outcome,
        cause=cause,
        rewards={"reward": float(letter == "P")} if letter in "PF" else {},
        usage=Usage() if silent else USAGE[trial.agent],
        seconds=1.0 if silent else 10.0 * trial.attempt,
    )
