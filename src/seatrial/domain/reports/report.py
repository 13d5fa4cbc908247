"""The report of a job, derived from its trials and never stored. Used by the CLI, the API and the page.

Per configuration (agent and model): counts, three scores, both intervals, pass@k, costs and durations. Pure: the order
of the facts does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import JobSpec
from seatrial.domain.reports.fact import Basis, Counts, TrialFact, by_configuration, by_task, count
from seatrial.domain.reports.matrix import TestLine, matrix
from seatrial.domain.reports.rules import PlanChanges, RuleCheck, check_rules, planned_share
from seatrial.domain.reports.score import Bounds, Score, ScoreLine, best_first, bounds, score, score_line
from seatrial.domain.reports.settled import Settled
from seatrial.domain.reports.settling import Finding
from seatrial.domain.statistics.estimates import SEED, Interval, Quantiles, mean, quantile, quantiles, wilson_interval
from seatrial.domain.trial import Outcome


class Durations(Frozen):
    """Seconds of the trials that ended by themselves."""

    total: float
    p50: float
    p90: float
    longest: float


class Spending(Frozen):
    """Usage of all tries of the trials, including errors and cancelled ones. ``None``: no try reported it."""

    tries: int = 0

    cost_usd: float | None = None
    """Sum over the trials that reported a cost; ``priced`` is their number."""
    priced: int = 0
    cost_per_trial: float | None = None
    cost_per_success: float | None = None
    """Cost of all trials that reported one, per trial of these that passed."""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    unavailable: dict[str, str] = {}

    @property
    def tokens(self) -> int | None:
        known = [tokens for tokens in (self.input_tokens, self.output_tokens) if tokens is not None]
        return sum(known) if known else None


class Spread(Frozen):
    """How duration, tokens and cost are spread over the planned trials. ``None``: no trial reported it."""

    seconds: Quantiles | None = None
    """Of the last try of trials that ended by themselves."""
    tokens: Quantiles | None = None
    """Input and output of all tries of a trial."""
    cost_usd: Quantiles | None = None


class TaskReport(Frozen):
    task: str
    digest: str
    counts: Counts
    leaderboard: float | None
    """Share that passed, with every error as 0; ``None`` while nothing can be scored."""
    valid: float | None
    """Share that passed of the valid trials; ``None`` without valid trials."""
    interval: Interval | None
    """Wilson interval of ``valid``."""
    mean_reward: float | None
    durations: Durations | None
    spending: Spending


class AddedAttempts(Frozen):
    """Attempts that were added after the plan. No score and no other count includes them."""

    counts: Counts
    spending: Spending


class ConfigurationReport(Frozen):
    label: str
    headline: ScoreLine
    """The score as lists and headers say it."""
    counts: Counts
    leaderboard: Score
    valid: Score
    coverage: float | None
    """Share of valid trials among those planned."""
    bounds: Bounds | None
    """How far the score could be off because of ended trials without a valid result; ``None`` if there are none."""
    mean_reward: float | None
    """Mean over tasks of the reward of valid trials; an error of the agent counts as 0."""
    durations: Durations | None
    spending: Spending
    spread: Spread
    tasks: tuple[TaskReport, ...]
    without_valid_trial: tuple[str, ...]
    """Tasks that ended without a valid trial: 0 in the leaderboard score, excluded from the valid score."""
    pending: tuple[str, ...]
    """Tasks without a result yet; excluded from both scores until then."""
    added: AddedAttempts | None = None
    """Attempts that were added after the plan, reported apart; ``None`` if there are none."""
    unavailable: dict[str, str] = {}


class JobReport(Frozen):
    counts: Counts
    """Of the planned trials."""
    complete: bool
    """Whether every trial ended. Before that, scores cover only ended trials."""
    configurations: tuple[ConfigurationReport, ...]
    """The best first. There is no score over several."""
    spending: Spending
    """Of everything that ran, added attempts included."""
    added: int = 0
    """Attempts that were added after the plan."""
    removed: int = 0
    """Planned trials that the store no longer has."""
    not_needed: int = 0
    """Planned trials that will never run, because the job stops when settled."""
    settled: Settled | None = None
    """For a job that stops when settled: what it found, what it saved, and what is guaranteed."""
    notices: tuple[str, ...] = ()
    """What every reader of these numbers must know: attempts added or removed, trials cancelled."""
    rules: RuleCheck | None = None
    """Rules of the Terminal-Bench leaderboard, if the job's spec is known."""
    tests: tuple[TestLine, ...] = ()
    """Results by test, if the facts contain tests."""


def report(
    facts: Iterable[TrialFact],
    *,
    spec: JobSpec | None = None,
    order: Sequence[str] = (),
    settled: Settled | None = None,
    seed: int = SEED,
) -> JobReport:
    """``facts``: one per trial, ended or not. ``order``: the order of configurations."""
    everything = list(facts)
    groups = by_configuration(everything, order).items()
    configurations = _best_first(_configuration(label, trials, spec, seed) for label, trials in groups)
    planned = [fact for fact in everything if not fact.added]
    counts = count(planned)
    changed = PlanChanges.of(spec, planned=counts.planned, added=len(everything) - counts.planned)
    return JobReport(
        counts=counts,
        complete=counts.complete,
        configurations=configurations,
        spending=spending(everything),
        added=changed.added,
        removed=changed.removed,
        not_needed=changed.not_needed,
        settled=settled,
        notices=(*_settled(settled), *changed.sentences, *_cancelled(counts)),
        rules=_rules(spec, configurations, changed) if spec else None,
        tests=matrix(planned),
    )


def durations(facts: Iterable[TrialFact]) -> Durations | None:
    seconds = sorted(_own_seconds(facts))
    middle, most = quantile(seconds, 0.5), quantile(seconds, 0.9)
    if middle is None or most is None:
        return None
    return Durations(total=math.fsum(seconds), p50=middle, p90=most, longest=seconds[-1])


def spending(facts: Sequence[TrialFact]) -> Spending:
    costs = [fact.cost_usd for fact in facts if fact.cost_usd is not None]
    passed = sum(fact.outcome is Outcome.PASSED for fact in facts if fact.cost_usd is not None)
    cost = math.fsum(costs) if costs else None
    unavailable: dict[str, str] = {}
    if cost is None:
        unavailable = dict.fromkeys(("cost_usd", "cost_per_trial", "cost_per_success"), "cost not reported")
    elif not passed:
        unavailable["cost_per_success"] = "no trial with a known cost passed"
    return Spending(
        cost_usd=cost,
        tries=sum(fact.tries for fact in facts),
        priced=len(costs),
        cost_per_trial=cost / len(costs) if cost is not None else None,
        cost_per_success=cost / passed if cost is not None and passed else None,
        input_tokens=_total(facts, lambda fact: fact.input_tokens),
        cached_tokens=_total(facts, lambda fact: fact.cached_tokens),
        output_tokens=_total(facts, lambda fact: fact.output_tokens),
        unavailable=unavailable,
    )


def _best_first(reports: Iterable[ConfigurationReport]) -> tuple[ConfigurationReport, ...]:
    found = {each.label: each for each in reports}
    return tuple(found[line.label] for line in best_first(each.headline for each in found.values()))


def _settled(found: Settled | None) -> tuple[str, ...]:
    if found is None:
        return ()
    return (found.sentence,) if found.finding is Finding.OPEN else (f"{found.sentence} {found.guarantee}",)


def _cancelled(counts: Counts) -> tuple[str, ...]:
    if not counts.cancelled:
        return ()
    return (f"{counts.cancelled:,} of {counts.planned:,} planned trials were cancelled.",)


def _configuration(label: str, everything: list[TrialFact], spec: JobSpec | None, seed: int) -> ConfigurationReport:
    facts = [fact for fact in everything if not fact.added]
    tasks = tuple(_task(name, trials) for name, trials in by_task(facts).items())
    counts = count(facts)
    scores = {basis: _score(tasks, basis, seed) for basis in Basis}
    headline = score_line(label, [task.counts for task in tasks], planned_share(spec, counts.planned), seed)
    rewards = [task.mean_reward for task in tasks if task.mean_reward is not None]
    unavailable: dict[str, str] = {}
    if headline.coverage is None:
        unavailable["coverage"] = "nothing was planned"
    if not rewards:
        unavailable["mean_reward"] = "no trial has a reward"
    spent_time = durations(facts)
    if spent_time is None:
        unavailable["durations"] = "no trial ended by itself"
    return ConfigurationReport(
        label=label,
        headline=headline,
        counts=counts,
        leaderboard=scores[Basis.LEADERBOARD],
        valid=scores[Basis.VALID],
        coverage=headline.coverage,
        bounds=bounds([task.counts for task in tasks]),
        mean_reward=mean(rewards),
        durations=spent_time,
        spending=spending(facts),
        spread=_spread(facts),
        tasks=tasks,
        without_valid_trial=tuple(task.task for task in tasks if task.counts.ended and not task.counts.valid),
        pending=tuple(task.task for task in tasks if task.counts.pending),
        added=_added([fact for fact in everything if fact.added]),
        unavailable=unavailable,
    )


def _added(facts: list[TrialFact]) -> AddedAttempts | None:
    counts = count(facts)
    return AddedAttempts(counts=counts, spending=spending(facts)) if facts else None


def _task(name: str, facts: list[TrialFact]) -> TaskReport:
    counts = count(facts)
    valid = counts.passes(Basis.VALID)
    return TaskReport(
        task=name,
        digest=facts[0].digest,
        counts=counts,
        leaderboard=None if counts.pending else counts.passes(Basis.LEADERBOARD).rate,
        valid=valid.rate if valid.trials else None,
        interval=wilson_interval(valid),
        mean_reward=mean([reward for fact in facts if (reward := _reward(fact)) is not None]),
        durations=durations(facts),
        spending=spending(facts),
    )


def _score(tasks: Sequence[TaskReport], basis: Basis, seed: int) -> Score:
    counted = [
        task.counts for task in tasks if (task.counts.valid if basis is Basis.VALID else not task.counts.pending)
    ]
    planned = max((task.counts.planned for task in tasks), default=0)
    return score([counts.passes(basis) for counts in counted], planned, seed)


def _spread(facts: Sequence[TrialFact]) -> Spread:
    tokens = [
        (fact.input_tokens or 0) + (fact.output_tokens or 0)
        for fact in facts
        if fact.input_tokens is not None or fact.output_tokens is not None
    ]
    return Spread(
        seconds=quantiles(_own_seconds(facts)),
        tokens=quantiles(tokens),
        cost_usd=quantiles([fact.cost_usd for fact in facts if fact.cost_usd is not None]),
    )


def _own_seconds(facts: Iterable[TrialFact]) -> list[float]:
    """Durations of trials that ended by themselves."""
    return [
        fact.seconds for fact in facts if fact.seconds is not None and fact.outcome not in (None, Outcome.CANCELLED)
    ]


def _reward(fact: TrialFact) -> float | None:
    if fact.agent_failed_to_be_graded:
        return 0.0
    graded = fact.valid and fact.reward is not None and math.isfinite(fact.reward)
    return fact.reward if graded else None


def _rules(spec: JobSpec, configurations: Sequence[ConfigurationReport], changed: PlanChanges) -> RuleCheck:
    counts = [{task.task: task.counts for task in each.tasks} for each in configurations]
    return check_rules(spec, counts, changed)


def _total(facts: Iterable[TrialFact], tokens_of: Callable[[TrialFact], int | None]) -> int | None:
    known = [tokens for fact in facts if (tokens := tokens_of(fact)) is not None]
    return sum(known) if known else None
