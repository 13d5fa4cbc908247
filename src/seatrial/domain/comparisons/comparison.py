"""Compares A with B on their common tasks. Used by ``seatrial compare``, the API and the page.

Differences are A minus B, task by task, so that task difficulty cancels out. Pure: the order of the facts does not
matter. ``verdict`` writes the sentence for people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from seatrial.domain.comparisons.effort import Effort, EffortDifferences, effort_differences
from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.fact import Basis, Counts
from seatrial.domain.statistics.estimates import (
    SEED,
    Interval,
    Passes,
    mean,
    paired_bootstrap,
    sample_variance,
    t_interval,
)
from seatrial.domain.statistics.significance import (
    Significance,
    Variances,
    detectable_difference,
    estimate_variances,
    holm,
    mcnemar,
    sign_flip,
    usual_trials,
)


class TaskDifference(Frozen):
    task: str
    a: float
    b: float
    a_minus_b: float
    passed_a: int
    trials_a: int
    passed_b: int
    trials_b: int
    effort_a: Effort = Effort()
    effort_b: Effort = Effort()


class LeftOut(Frozen):
    """Tasks that could not be compared, by name."""

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Both sides have a task of this name, but with different content."""
    no_valid_trial: tuple[str, ...] = ()
    """At least one side has no trial that can be scored."""


class Comparison(Frozen):
    label_a: str
    label_b: str
    basis: Basis
    tasks: tuple[TaskDifference, ...]
    """Tasks on which B is worse come first, the largest difference on top."""
    score_a: float | None
    score_b: float | None
    """Over the common tasks only."""
    a_minus_b: float | None
    interval: Interval | None
    """95 % interval of ``a_minus_b``, with the tasks as a sample."""
    bootstrap: Interval | None = None
    """The same by a paired bootstrap: tasks are resampled, then the trials of both sides."""
    ahead_a: int = 0
    ahead_b: int = 0
    """Tasks on which one side passed a larger share than the other."""
    mcnemar: Significance | None = None
    """Exact McNemar test over those tasks: is the split uneven? It ignores by how much the sides differ."""
    significance: Significance | None
    p_holm: float | None = None
    """``significance.p``, Holm-corrected for several pairs; ``None`` for a single pair."""
    pairs: int = 1
    detectable: float | None
    """The smallest difference that trials like these detect with 80 % power."""
    variances: Variances
    left_out: LeftOut
    efforts: EffortDifferences = EffortDifferences()
    """Cost, tokens and time per trial, on the compared tasks."""
    job_a: int | None = None
    job_b: int | None = None
    configuration_a: str = ""
    configuration_b: str = ""
    unavailable: dict[str, str] = {}

    @property
    def p(self) -> float | None:
        """The p-value to judge by."""
        if self.p_holm is not None:
            return self.p_holm
        return self.significance.p if self.significance else None


class Side(Frozen):
    """One configuration of one job, prepared for a comparison."""

    label: str
    """The displayed name; the two sides should have different ones."""
    configuration: str
    job: int | None = None
    tasks: dict[str, Counts]
    digests: dict[str, str] = {}
    efforts: dict[str, Effort] = {}

    def is_same(self, other: Side) -> bool:
        return self.job is not None and (self.job, self.configuration) == (other.job, other.configuration)


def compare(
    a: Side, b: Side, *, basis: Basis = Basis.VALID, same_name_is_enough: bool = False, seed: int = SEED
) -> Comparison:
    names, left_out = _common(a, b, basis, same_name_is_enough)
    pairs = [(a.tasks[name].passes(basis), b.tasks[name].passes(basis)) for name in names]
    differences = [float(one.minus(other)) for one, other in pairs]
    unavailable = _reasons(len(pairs))
    interval = _interval(differences)
    if interval is None:
        alike = "every task differs by the same amount, so the spread is unknown"
        unavailable = {"interval": alike, "bootstrap": alike} | unavailable
    variances = estimate_variances(pairs)
    ahead_a, ahead_b = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return Comparison(
        label_a=a.label,
        label_b=b.label,
        basis=basis,
        tasks=_by_regression(a, b, names, pairs),
        score_a=mean([one.rate for one, _ in pairs]),
        score_b=mean([other.rate for _, other in pairs]),
        a_minus_b=mean(differences),
        interval=interval,
        bootstrap=paired_bootstrap(pairs, seed) if len(pairs) > 1 else None,
        ahead_a=ahead_a,
        ahead_b=ahead_b,
        mcnemar=mcnemar(ahead_a, ahead_b) if len(pairs) > 1 else None,
        significance=_test(pairs, seed) if len(pairs) > 1 else None,
        detectable=_detectable(pairs, variances) if len(pairs) > 1 else None,
        variances=variances,
        left_out=left_out,
        efforts=effort_differences(names, a.efforts, b.efforts),
        job_a=a.job,
        job_b=b.job,
        configuration_a=a.configuration,
        configuration_b=b.configuration,
        unavailable=unavailable,
    )


def compare_all(
    pairs: Sequence[tuple[Side, Side]],
    *,
    basis: Basis = Basis.VALID,
    same_name_is_enough: bool = False,
    seed: int = SEED,
) -> tuple[Comparison, ...]:
    """Several comparisons with Holm-corrected p-values."""
    found = [compare(a, b, basis=basis, same_name_is_enough=same_name_is_enough, seed=seed) for a, b in pairs]
    tested = [index for index, comparison in enumerate(found) if comparison.significance]
    if len(tested) < 2:
        return tuple(found)
    p_values = [tested_pair.p for index in tested if (tested_pair := found[index].significance)]
    for index, p in zip(tested, holm(p_values), strict=True):
        found[index] = found[index].model_copy(update={"p_holm": p, "pairs": len(tested)})
    return tuple(found)


def pair_up(left: Sequence[Side], right: Sequence[Side]) -> tuple[tuple[Side, Side], ...]:
    """Pairs to compare: equal configurations of two jobs if there are any, otherwise each with each. Nothing is
    compared with itself."""
    pairs = tuple((one, other) for one in left for other in right if not one.is_same(other))
    return tuple(pair for pair in pairs if pair[0].configuration == pair[1].configuration) or pairs


def against_first(sides: Sequence[Side]) -> tuple[tuple[Side, Side], ...]:
    return tuple((sides[0], other) for other in sides[1:])


def pairs_within(sides: Sequence[Side]) -> tuple[tuple[Side, Side], ...]:
    """Each with each."""
    return tuple(combinations(sides, 2))


def _common(a: Side, b: Side, basis: Basis, same_name_is_enough: bool) -> tuple[list[str], LeftOut]:
    shared = sorted(a.tasks.keys() & b.tasks.keys())
    changed = [] if same_name_is_enough else [name for name in shared if a.digests.get(name) != b.digests.get(name)]
    same = [name for name in shared if name not in set(changed)]
    unscored = [
        name for name in same if not (a.tasks[name].passes(basis).trials and b.tasks[name].passes(basis).trials)
    ]
    return [name for name in same if name not in set(unscored)], LeftOut(
        only_a=tuple(sorted(a.tasks.keys() - b.tasks.keys())),
        only_b=tuple(sorted(b.tasks.keys() - a.tasks.keys())),
        changed=tuple(changed),
        no_valid_trial=tuple(unscored),
    )


def _by_regression(
    a: Side, b: Side, names: Sequence[str], pairs: Sequence[tuple[Passes, Passes]]
) -> tuple[TaskDifference, ...]:
    rows = (
        TaskDifference(
            task=name,
            a=one.rate,
            b=other.rate,
            a_minus_b=float(one.minus(other)),
            passed_a=one.passed,
            trials_a=one.trials,
            passed_b=other.passed,
            trials_b=other.trials,
            effort_a=a.efforts.get(name, Effort()),
            effort_b=b.efforts.get(name, Effort()),
        )
        for name, (one, other) in zip(names, pairs, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: (-row.a_minus_b, row.task)))


def _interval(differences: Sequence[float]) -> Interval | None:
    centre, variance = mean(differences), sample_variance(differences)
    if centre is None or not variance:
        return None
    standard_error = math.sqrt(variance / len(differences))
    return t_interval(centre, standard_error, len(differences) - 1, lowest=-1.0)


def _test(pairs: Sequence[tuple[Passes, Passes]], seed: int) -> Significance:
    if all(one.trials == other.trials == 1 for one, other in pairs):
        only_a = sum(one.passed > other.passed for one, other in pairs)
        only_b = sum(one.passed < other.passed for one, other in pairs)
        return mcnemar(only_a, only_b)
    return sign_flip([one.minus(other) for one, other in pairs], seed)


def _detectable(pairs: Sequence[tuple[Passes, Passes]], variances: Variances) -> float | None:
    trials_a, trials_b = (usual_trials(each) for each in zip(*pairs, strict=True))
    return detectable_difference(len(pairs), trials_a, trials_b, variances)


def _reasons(tasks: int) -> dict[str, str]:
    if tasks == 0:
        names = ("score_a", "score_b", "a_minus_b", "interval", "bootstrap", "significance", "mcnemar", "detectable")
        return dict.fromkeys(names, "no task in common has a valid trial on both sides")
    if tasks == 1:
        several = ("interval", "bootstrap", "significance", "mcnemar", "detectable")
        return dict.fromkeys(several, "one task says nothing about others")
    return {}
