"""The trials behind one cell of a comparison."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result, TestResult, TestStatus, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome
from seatrial.engine.reports.attempt_pairs import pair_attempts
from seatrial.errors import InvalidInput, NotFound
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REF = TaskRef(name="t", digest="sha256:" + "a" * 64)


async def run(store: MemoryStore, **stories: str) -> None:
    """Outcomes of the attempts of each agent: passed, failed, or an error."""
    attempts = max(map(len, stories.values()))
    spec = JobSpec(tasks=(REF,), agents=tuple(AgentSpec(name=name) for name in stories), attempts=attempts)
    await store.jobs.create(spec, list(plan(spec)), NOW)
    for trial in await store.trials.claim("w", timedelta(minutes=1), 100, NOW):
        letter = stories[trial.agent][trial.attempt - 1]
        status = TestStatus.PASSED if letter == "P" else TestStatus.FAILED
        result = Result(
            outcome={"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERROR}[letter],
            cause=Cause.SANDBOX if letter == "E" else None,
            rewards={} if letter == "E" else {"reward": float(letter == "P")},
            tests=(TestResult(name="flips", status=status), TestResult(name="stays", status=TestStatus.PASSED)),
            usage=Usage(input_tokens=10, output_tokens=1),
            seconds=2.0,
        )
        await store.trials.finish(trial.id, trial.try_number, result, NOW)


async def test_attempts_are_paired_by_number_with_their_flips() -> None:
    store = MemoryStore()
    await run(store, a="PPF", b="FPE")
    found = await pair_attempts(store, "1:a", "1:b", "t")
    assert [(pair.a and pair.a.outcome, pair.b and pair.b.outcome) for pair in found.pairs] == [
        ("passed", "failed"),
        ("passed", "passed"),
        ("failed", "error"),
    ]
    flips = [[(flip.name, flip.left, flip.right) for flip in pair.flips] for pair in found.pairs]
    gone = [("flips", "failed", None), ("stays", "passed", None)]
    assert flips == [[("flips", "passed", "failed")], [], gone], "an error has no test results"
    assert (found.passed_a, found.trials_a, found.passed_b, found.trials_b) == (2, 3, 1, 2), "as the comparison counts"
    [share] = found.tests
    assert (share.name, share.passed_a, share.run_a, share.passed_b, share.run_b) == ("flips", 2, 3, 1, 2)
    first = found.pairs[0].a
    assert first is not None and (first.attempt, first.attempts, first.tokens, first.seconds) == (1, 3, 11, 2.0)


async def test_a_side_without_a_partner_and_added_attempts() -> None:
    store = MemoryStore()
    await run(store, a="PP")
    await run(store, a="P")
    await store.jobs.add_attempts([3], NOW)
    found = await pair_attempts(store, "1", "2", "t")
    assert [(pair.a is None, pair.b is None) for pair in found.pairs] == [(False, False), (False, True)]
    assert found.left_off == 0


async def test_what_is_no_cell_is_refused() -> None:
    store = MemoryStore()
    await run(store, a="P", b="F")
    with pytest.raises(InvalidInput, match="several configurations"):
        await pair_attempts(store, "1", "1:b", "t")
    with pytest.raises(NotFound):
        await pair_attempts(store, "1:a", "1:b", "nothing")
