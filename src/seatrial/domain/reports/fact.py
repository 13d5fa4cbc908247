"""The data of a trial that statistics need, and counts of trials. Built by ``engine.reports`` from rows.

Also decides which errors count against the agent, and so which trials are *valid*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import TestResult
from seatrial.domain.statistics.estimates import Passes
from seatrial.domain.trial import Cause, Mark, Outcome

UNKNOWN_CAUSE = "unknown"


class Basis(StrEnum):
    """Which trials a score counts."""

    LEADERBOARD = "leaderboard"
    """Every error counts as 0."""
    VALID = "valid"
    """Infrastructure errors are excluded. An agent that crashed before grading counts as 0."""


@dataclass(frozen=True, slots=True)
class TrialFact:
    """One trial. Kept small: a report may contain hundreds of thousands."""

    task: str
    configuration: str
    """Label of agent and model."""
    attempt: int = 1
    added: bool = False
    """Whether the attempt was added after the plan. It is reported apart and never scored."""
    digest: str = ""
    """Digest of the task's content. Tasks with the same name and different content are different tasks."""
    outcome: Outcome | None = None
    """``None`` until the trial has ended."""
    cause: Cause | None = None
    marks: tuple[Mark, ...] = ()
    reward: float | None = None
    seconds: float | None = None
    """Duration of the last try."""
    tries: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Tokens and cost of all tries together."""
    tests: tuple[TestResult, ...] = ()

    @property
    def agent_failed_to_be_graded(self) -> bool:
        return self.outcome is Outcome.ERROR and self.cause is Cause.AGENT

    @property
    def valid(self) -> bool:
        """Whether it says something about the agent."""
        return self.outcome in (Outcome.PASSED, Outcome.FAILED) or self.agent_failed_to_be_graded


class Counts(Frozen):
    """Counts of trials. ``passed`` + ``failed`` + all ``errors`` + ``cancelled`` = ``ended``."""

    planned: int = 0
    ended: int = 0
    passed: int = 0
    failed: int = 0
    errors: dict[str, int] = {}
    """By cause, the most frequent first."""
    cancelled: int = 0
    valid: int = 0
    """Passed, failed, or an error caused by the agent."""
    marks: dict[str, int] = {}

    @property
    def error(self) -> int:
        return sum(self.errors.values())

    @property
    def scored(self) -> int:
        """Trials that the leaderboard score counts: all that ended and were not cancelled."""
        return self.ended - self.cancelled

    @property
    def complete(self) -> bool:
        return self.ended == self.planned

    @property
    def pending(self) -> bool:
        """Nothing to score yet, and not all trials have ended."""
        return self.scored == 0 and not self.complete

    def passes(self, basis: Basis) -> Passes:
        return Passes(self.passed, self.valid if basis is Basis.VALID else self.scored)


def count(facts: Sequence[TrialFact]) -> Counts:
    ways = Counter((fact.outcome, fact.cause) for fact in facts)
    outcomes: Counter[Outcome | None] = Counter()
    errors: Counter[str] = Counter()
    for (outcome, cause), times in ways.items():
        outcomes[outcome] += times
        if outcome is Outcome.ERROR:
            errors[cause.value if cause else UNKNOWN_CAUSE] += times
    passed, failed = outcomes[Outcome.PASSED], outcomes[Outcome.FAILED]
    return Counts(
        planned=len(facts),
        ended=len(facts) - outcomes[None],
        passed=passed,
        failed=failed,
        errors=_by_frequency(errors),
        cancelled=outcomes[Outcome.CANCELLED],
        valid=passed + failed + errors[Cause.AGENT.value],
        marks=_by_frequency(Counter(mark.value for fact in facts for mark in fact.marks)),
    )


def by_task(facts: Iterable[TrialFact]) -> dict[str, list[TrialFact]]:
    """Trials by task, sorted by name, so that results do not depend on the order of trials."""
    tasks: dict[str, list[TrialFact]] = {}
    for fact in facts:
        tasks.setdefault(fact.task, []).append(fact)
    return dict(sorted(tasks.items()))


def by_configuration(facts: Iterable[TrialFact], order: Sequence[str] = ()) -> dict[str, list[TrialFact]]:
    """Trials by configuration: those in ``order`` first, then the others by label."""
    found: dict[str, list[TrialFact]] = {}
    for fact in facts:
        found.setdefault(fact.configuration, []).append(fact)
    labels = [label for label in dict.fromkeys(order) if label in found]
    return {label: found[label] for label in labels + sorted(found.keys() - set(labels))}


def _by_frequency(counter: Counter[str]) -> dict[str, int]:
    found = [(name, times) for name, times in counter.items() if times]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))
