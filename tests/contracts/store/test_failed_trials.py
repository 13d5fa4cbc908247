"""What decided the failed trials of a job."""

from __future__ import annotations

from seatrial.domain.reports.failures import FailedTest
from seatrial.domain.result import Result, TestResult, TestStatus
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit

FAILED = Result(
    outcome=Outcome.FAILED,
    rewards={"reward": 0.0},
    marks=(Mark.AGENT_TIMEOUT,),
    message="It ran out of time.",
    tests=(
        TestResult(name="good", status=TestStatus.PASSED),
        TestResult(name="bad", status=TestStatus.FAILED, message="assert ü"),
        TestResult(name="worse", status=TestStatus.ERROR),
    ),
    last_command="bash: make",
)


async def test_failed_trials_and_errors_are_told_with_what_decided_them(store: Store) -> None:
    job, other = await submit(store, trials=4), await submit(store)
    first, second, third, _ = await store.trials.claim("w", MINUTE, 4, NOON, job_id=job.id)
    await store.trials.finish(first.id, 1, FAILED, NOON)
    await store.trials.finish(second.id, 1, faulty(), NOON)
    await store.trials.finish(third.id, 1, passed(), NOON)
    await store.jobs.add_attempts([first.id], NOON)
    [added] = await store.trials.claim("w", MINUTE, 4, NOON, job_id=job.id)
    await store.trials.finish(added.id, 1, FAILED, NOON)
    one, two = await store.trials.failed(job.id)
    assert (one.trial.trial_id, one.digest, one.agent_index, one.trial.task) == (
        first.id,
        first.task.digest,
        0,
        first.task.name,
    )
    assert one.trial.tests == (FailedTest("bad", "assert ü"), FailedTest("worse"))
    assert (one.trial.marks, one.trial.message, one.trial.last_command) == (
        (Mark.AGENT_TIMEOUT,),
        "It ran out of time.",
        "bash: make",
    )
    assert (two.trial.outcome, two.trial.cause, two.trial.message) == (
        Outcome.ERROR,
        Cause.SANDBOX,
        "The sandbox vanished.",
    )
    assert await store.trials.failed(other.id) == []
