"""What statistics need to know about a trial, and how trials are counted. Built by ``engine.reporting`` from rows.

Holds who is to blame for an error: that decides which trials are *valid* evidence about an agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import TestResult
from seatrial.domain.statistics import Passes
from seatrial.domain.trial import Cause, Mark, Outcome

UNKNOWN_CAUSE = "unknown"


class Basis(StrEnum):
    """Which trials a score counts."""

    LEADERBOARD = "leaderboard"
    """Every error counts as 0."""
    VALID = "valid"
    """Faults of ours are left out; an agent that crashed before anything could be graded counts as 0."""


@dataclass(frozen=True, slots=True)
class TrialFact:
    """One planned trial. A light value, since a report is made of up to hundreds of thousands."""

    task: str
    configuration: str
    """Agent and model, as a label."""
    repeat: int = 1
    digest: str = ""
    """Content of the task; two tasks of one name with different content are not the same task."""
    outcome: Outcome | None = None
    """``None`` until the trial ended."""
    cause: Cause | None = None
    marks: tuple[Mark, ...] = ()
    reward: float | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    tests: tuple[TestResult, ...] = ()

    @property
    def agent_failed_to_be_graded(self) -> bool:
        return self.outcome is Outcome.ERROR and self.cause is Cause.AGENT

    @property
    def valid(self) -> bool:
        """Whether it is evidence about the agent."""
        return self.outcome in (Outcome.PASSED, Outcome.FAILED) or self.agent_failed_to_be_graded


class Counts(Frozen):
    """How trials stand. ``passed`` + ``failed`` + all ``errors`` + ``cancelled`` = ``ended``."""

    planned: int = 0
    ended: int = 0
    passed: int = 0
    failed: int = 0
    errors: dict[str, int] = {}
    """By cause, the most frequent first."""
    cancelled: int = 0
    valid: int = 0
    """Passed, failed, or an error of the agent's own."""
    marks: dict[str, int] = {}

    @property
    def error(self) -> int:
        return sum(self.errors.values())

    @property
    def scored(self) -> int:
        """What the leaderboard score counts: all that ended but was not cancelled."""
        return self.ended - self.cancelled

    @property
    def complete(self) -> bool:
        return self.ended == self.planned

    @property
    def pending(self) -> bool:
        """Nothing to score yet, and more to come."""
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
    """The trials of each task, tasks by name, so that no result depends on which came first."""
    tasks: dict[str, list[TrialFact]] = {}
    for fact in facts:
        tasks.setdefault(fact.task, []).append(fact)
    return dict(sorted(tasks.items()))


def by_configuration(facts: Iterable[TrialFact], order: Sequence[str] = ()) -> dict[str, list[TrialFact]]:
    """The trials of each configuration: those of ``order`` first and in that order, the others by label."""
    found: dict[str, list[TrialFact]] = {}
    for fact in facts:
        found.setdefault(fact.configuration, []).append(fact)
    labels = [label for label in dict.fromkeys(order) if label in found]
    return {label: found[label] for label in labels + sorted(found.keys() - set(labels))}


def _by_frequency(counter: Counter[str]) -> dict[str, int]:
    found = [(name, times) for name, times in counter.items() if times]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))
