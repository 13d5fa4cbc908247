"""The trials behind one cell of a comparison: attempt by attempt, with the tests that flipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from fractions import Fraction

from seatrial.domain.comparisons.comparison import Side
from seatrial.domain.comparisons.divergence import TestFlip, test_flips
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job
from seatrial.domain.reports.fact import Basis
from seatrial.domain.result import TestResult, TestStatus
from seatrial.domain.trial import Cause, Mark, Outcome, TrialState
from seatrial.engine.reports.comparing import look_up
from seatrial.engine.reports.reporting import configuration_labels
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.store import Store, TrialFilter, TrialRow

MOST = 100
"""Attempts of a side that are read, because tests are part of a result, which may be large."""


class PairedTrial(Frozen):
    trial: int
    attempt: int
    attempts: int
    """Planned attempts of its job."""
    state: TrialState
    outcome: Outcome | None
    cause: Cause | None
    reward: float | None
    marks: tuple[Mark, ...]
    seconds: float | None
    tokens: int | None
    cost_usd: float | None
    """Duration, tokens and cost of its last try."""


class AttemptPair(Frozen):
    """The same attempt of both sides; ``None`` if one has fewer."""

    a: PairedTrial | None
    b: PairedTrial | None
    flips: tuple[TestFlip, ...] = ()
    """Tests with different results: ``left`` is A, ``right`` is B."""


class TestShare(Frozen):
    """How often one test passed on each side."""

    __test__ = False  # not a pytest class

    name: str
    passed_a: int
    run_a: int
    passed_b: int
    run_b: int

    @property
    def b_minus_a(self) -> Fraction:
        return Fraction(self.passed_b, max(1, self.run_b)) - Fraction(self.passed_a, max(1, self.run_a))

    @property
    def differs(self) -> bool:
        return bool(self.b_minus_a) or bool(self.run_a) != bool(self.run_b)


class TaskPairs(Frozen):
    task: str
    job_a: int
    job_b: int
    configuration_a: str
    configuration_b: str
    passed_a: int
    trials_a: int
    passed_b: int
    trials_b: int
    """As in the comparison: of valid trials."""
    pairs: tuple[AttemptPair, ...]
    tests: tuple[TestShare, ...]
    """Tests that passed in another share of trials, those that B lost first."""
    left_off: int
    """Attempts that are not listed."""


async def pair_attempts(store: Store, a: str, b: str, task: str, basis: Basis = Basis.VALID) -> TaskPairs:
    """``a`` and ``b`` each name one configuration of a job."""
    one, other = await _only(store, a, "baseline"), await _only(store, b, "other")
    if task not in one.tasks and task not in other.tasks:
        raise NotFound(f"Neither {a} nor {b} has a task {task!r}.")
    left, right = await _rows(store, one, task), await _rows(store, other, task)
    (passed_a, trials_a), (passed_b, trials_b) = (
        side.tasks[task].passes(basis) if task in side.tasks else (0, 0) for side in (one, other)
    )
    listed = max(len(left), len(right))
    planned = max(side.tasks[task].planned for side in (one, other) if task in side.tasks)
    jobs = {side.job: await store.jobs.get(side.job) for side in (one, other) if side.job is not None}
    return TaskPairs(
        task=task,
        job_a=one.job or 0,
        job_b=other.job or 0,
        configuration_a=one.configuration,
        configuration_b=other.configuration,
        passed_a=passed_a,
        trials_a=trials_a,
        passed_b=passed_b,
        trials_b=trials_b,
        pairs=tuple(_pair(left.get(attempt), right.get(attempt), jobs) for attempt in sorted(left.keys() | right)),
        tests=_test_shares(left.values(), right.values()),
        left_off=planned - listed,
    )


async def _only(store: Store, wanted: str, field: str) -> Side:
    found = await look_up(store, wanted)
    if len(found) > 1:
        names = ", ".join(side.configuration for side in found)
        raise InvalidInput(f"{wanted} has several configurations.", field=field, fix=f"Name one of: {names}.")
    return found[0]


async def _rows(store: Store, side: Side, task: str) -> dict[int, TrialRow]:
    """Its planned trials of the task, by attempt."""
    digest = side.digests.get(task)
    if digest is None or side.job is None:
        return {}
    job = await store.jobs.get(side.job)
    index = configuration_labels(job.spec.agents).index(side.configuration)
    name = next(ref.name for ref in job.spec.tasks if ref.digest == digest)
    found: dict[int, TrialRow] = {}
    chosen = TrialFilter(job_id=job.id, task=name, agent=job.spec.agents[index].name)
    async with aclosing(store.trials.each(chosen)) as rows:
        async for row in rows:
            trial = row.trial
            if (trial.task.digest, trial.agent_index) == (digest, index) and not trial.added:
                found[trial.attempt] = row
            if len(found) == MOST:
                break
    return found


def _pair(a: TrialRow | None, b: TrialRow | None, jobs: dict[int, Job]) -> AttemptPair:
    flips = test_flips(_tests(a), _tests(b)) if a is not None and b is not None else ()
    return AttemptPair(a=_trial(a, jobs), b=_trial(b, jobs), flips=flips)


def _trial(row: TrialRow | None, jobs: dict[int, Job]) -> PairedTrial | None:
    if row is None:
        return None
    trial, result = row.trial, row.result if row.trial.state is TrialState.ENDED else None
    usage = result.usage if result else None
    known = [part for part in (usage.input_tokens, usage.output_tokens) if part is not None] if usage else []
    return PairedTrial(
        trial=trial.id,
        attempt=trial.attempt,
        attempts=jobs[trial.job_id].spec.attempts,
        state=trial.state,
        outcome=trial.outcome,
        cause=trial.cause,
        reward=result.reward if result else None,
        marks=result.marks if result else (),
        seconds=result.seconds if result else None,
        tokens=sum(known) if known else None,
        cost_usd=usage.cost_usd if usage else None,
    )


def _tests(row: TrialRow | None) -> Sequence[TestResult]:
    return row.result.tests if row is not None and row.result is not None and row.trial.graded else ()


def _test_shares(left: Iterable[TrialRow], right: Iterable[TrialRow]) -> tuple[TestShare, ...]:
    counts: dict[str, list[int]] = {}
    for offset, rows in ((0, left), (2, right)):
        for row in rows:
            for test in _tests(row):
                line = counts.setdefault(test.name, [0, 0, 0, 0])
                line[offset] += test.status is TestStatus.PASSED
                line[offset + 1] += test.status is not TestStatus.SKIPPED
    shares = (
        TestShare(name=name, passed_a=line[0], run_a=line[1], passed_b=line[2], run_b=line[3])
        for name, line in counts.items()
    )
    return tuple(sorted((each for each in shares if each.differs), key=lambda each: (each.b_minus_a, each.name)))
