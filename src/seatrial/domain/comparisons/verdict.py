"""The result of a comparison in one sentence. Used by the CLI, the API and the page.

"Better" needs p < 0.05 (Holm-corrected for several pairs), and the sentence always states the detectable difference.
"""

from __future__ import annotations

from seatrial.domain.comparisons.comparison import Comparison

SIGNIFICANT = 0.05


def verdict(comparison: Comparison) -> str:
    tasks, a, b = len(comparison.tasks), comparison.label_a, comparison.label_b
    if tasks == 0:
        return f"{a} and {b} have no task in common with a valid trial on both sides, so they cannot be compared."
    if tasks == 1:
        return _one_task(comparison)
    if all(row.a_minus_b == 0 for row in comparison.tasks):
        return f"{a} and {b} scored the same on each of the {tasks} common tasks; {_unseen(comparison)}."
    better, worse = (a, b) if (comparison.a_minus_b or 0.0) >= 0 else (b, a)
    if significant(comparison):
        return f"{better} is better than {worse} by {_evidence(comparison)}; {_unseen(comparison)}."
    if _hopeless(comparison):
        return (
            f"Too little data to tell {a} and {b} apart: {_lead(better, comparison)}, and even if every task that "
            f"differs had favoured the same side, p would not have been below {SIGNIFICANT}; {_unseen(comparison)}."
        )
    return f"No difference can be told: {_lead(better, comparison)}; {_unseen(comparison)}."


def significant(comparison: Comparison) -> bool:
    return comparison.p is not None and comparison.p < SIGNIFICANT


def p_text(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}" if p < 0.01 else f"p = {p:.2f}"


def points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−") if round(100 * share, 1) else "0.0"


def _one_task(comparison: Comparison) -> str:
    row = comparison.tasks[0]
    return (
        f"On the only common task, {row.task}, {comparison.label_a} passed {row.passed_a} of {row.trials_a} trials and "
        f"{comparison.label_b} {row.passed_b} of {row.trials_b}; one task says nothing about others."
    )


def _lead(better: str, comparison: Comparison) -> str:
    if points(comparison.a_minus_b or 0.0) == "0.0":
        return f"both scored the same on average ({_support(comparison)})"
    return f"{better} scored {_evidence(comparison)} higher"


def _evidence(comparison: Comparison) -> str:
    return f"{points(abs(comparison.a_minus_b or 0.0))} points ({_support(comparison)})"


def _support(comparison: Comparison) -> str:
    """The interval from the view of the side that is ahead."""
    parts = []
    interval = comparison.interval
    if interval:
        ends = (interval.low, interval.high) if (comparison.a_minus_b or 0.0) >= 0 else (-interval.high, -interval.low)
        parts.append(f"{interval.level:.0%} interval {points(ends[0])} to {points(ends[1])}".replace("%", " %"))
    if comparison.p is not None:
        corrected = f" after Holm over {comparison.pairs} pairs" if comparison.p_holm is not None else ""
        parts.append(p_text(comparison.p) + corrected)
    return ", ".join(parts)


def _unseen(comparison: Comparison) -> str:
    tasks, detectable = len(comparison.tasks), comparison.detectable
    assumed = " (assuming usual variances)" if comparison.variances.assumed else ""
    if detectable is None or detectable >= 1:
        return f"with {tasks} tasks hardly any difference could have been seen{assumed}"
    if significant(comparison) and abs(comparison.a_minus_b or 0.0) < detectable:
        # It was found, but the power is low. Saying that it could not be seen would contradict the first half.
        return (
            f"with {tasks} tasks a difference under {points(detectable)} points is often missed, so its size is unsure"
        )
    return f"with {tasks} tasks a difference under {points(detectable)} points could not have been seen{assumed}"


def _hopeless(comparison: Comparison) -> bool:
    return comparison.significance is not None and comparison.significance.smallest_p >= SIGNIFICANT
