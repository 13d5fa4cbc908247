"""A job in one line, and the table of its configurations, as terminal, Markdown and HTML say them."""

from __future__ import annotations

from seatrial.domain.reports.fact import Counts
from seatrial.domain.reports.figures import NOTHING, dollars, duration, estimate, percent, plural, span
from seatrial.domain.reports.report import ConfigurationReport

HEADINGS = (
    "configuration",
    "score",
    "coverage",
    "leaderboard",
    "bounds",
    "passed",
    "cost",
    "per success",
    "median time",
)


def summary_cells(each: ConfigurationReport) -> tuple[str, ...]:
    """The label is untrusted: the caller must make it harmless where it goes."""
    line, spent = each.headline, each.spending
    score = "not scored" if line.value is None else estimate(line.value, line.low, line.high)
    return (
        each.label,
        score + (f" so far, {line.ended} of {line.planned}" if line.so_far else ""),
        percent(line.coverage),
        percent(line.leaderboard if line.value is not None else None),
        NOTHING if line.bounds is None else span(line.bounds.low, line.bounds.high),
        f"{each.counts.passed} of {each.counts.ended}",
        dollars(spent.cost_usd),
        dollars(spent.cost_per_success),
        duration(each.spread.seconds.p50) if each.spread.seconds else NOTHING,
    )


def status_line(counts: Counts) -> str:
    parts = [(counts.passed, "passed"), (counts.failed, "failed"), (counts.cancelled, "cancelled")]
    words = [f"{number:,} {word}" for number, word in parts if number]
    if counts.error:
        words.insert(2 if counts.failed else 1, plural(counts.error, "error"))
    ended = plural(counts.ended, "trial")
    total = ended if counts.complete else f"{counts.ended:,} of {plural(counts.planned, 'trial')} ended"
    return f"{total}: {', '.join(words)}" if words else total
