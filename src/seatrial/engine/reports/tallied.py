"""Counts and efforts of a task, from what the store tallied. For lists and comparisons, which read no single trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from seatrial.domain.comparisons.effort import Effort
from seatrial.domain.reports.fact import UNKNOWN_CAUSE, Counts
from seatrial.domain.trial import Cause, Outcome
from seatrial.ports.store import SpentTally, Tally


def counts_of(tallies: Sequence[Tally]) -> Counts:
    """``tallies`` of one task and configuration. Without marks, which the store does not tally."""
    outcomes: Counter[Outcome | None] = Counter()
    errors: Counter[str] = Counter()
    for tally in tallies:
        outcomes[tally.outcome] += tally.trials
        if tally.outcome is Outcome.ERROR:
            errors[tally.cause.value if tally.cause else UNKNOWN_CAUSE] += tally.trials
    planned = outcomes.total()
    return Counts(
        planned=planned,
        ended=planned - outcomes[None],
        passed=outcomes[Outcome.PASSED],
        failed=outcomes[Outcome.FAILED],
        errors=dict(errors.most_common()),
        cancelled=outcomes[Outcome.CANCELLED],
        valid=outcomes[Outcome.PASSED] + outcomes[Outcome.FAILED] + errors[Cause.AGENT.value],
    )


def effort_of(tallies: Sequence[SpentTally]) -> Effort:
    """Cost and tokens of every trial, time of those that ended by themselves."""
    timed = [tally for tally in tallies if tally.outcome not in (None, Outcome.CANCELLED)]
    return Effort(
        cost_usd=_per_trial(sum(tally.cost_usd for tally in tallies), sum(tally.priced for tally in tallies)),
        tokens=_per_trial(sum(tally.tokens for tally in tallies), sum(tally.metered for tally in tallies)),
        seconds=_per_trial(sum(tally.seconds for tally in timed), sum(tally.timed for tally in timed)),
    )


def _per_trial(total: float, trials: int) -> float | None:
    return total / trials if trials else None
