"""A report as Markdown, for a pull request: the same numbers as on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.cli.view.figures import NOTHING, dollars, estimate, percent
from seatrial.cli.view.progress import duration
from seatrial.cli.view.tables import status_line
from seatrial.domain.job import Job
from seatrial.domain.report import ConfigurationReport, JobReport

_HEADINGS = (
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
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!&~])")


def report_lines(job: Job, report: JobReport) -> Iterator[str]:
    yield f"**job {job.id} ({_plain(job.title)})**: {status_line(report.counts)}"
    yield ""
    yield f"| {' | '.join(_HEADINGS)} |"
    yield f"|{' --- |' * len(_HEADINGS)}"
    for each in report.configurations:
        yield f"| {' | '.join(_cells(each))} |"
    for notice in report.notices:
        yield ""
        yield notice


def _cells(each: ConfigurationReport) -> tuple[str, ...]:
    line, spent = each.headline, each.spending
    score = "not scored" if line.value is None else estimate(line.value, line.low, line.high)
    bounds = NOTHING if line.bounds is None else f"{100 * line.bounds.low:.1f} to {percent(line.bounds.high)}"
    return (
        _plain(each.label),
        score + (f" so far, {line.ended} of {line.planned}" if line.so_far else ""),
        percent(line.coverage),
        percent(line.leaderboard if line.value is not None else None),
        bounds,
        f"{each.counts.passed} of {each.counts.ended}",
        dollars(spent.cost_usd),
        dollars(spent.cost_per_success),
        duration(each.spread.seconds.p50) if each.spread.seconds else NOTHING,
    )


def _plain(text: str) -> str:
    """Names come from strangers: nothing in them is markup."""
    return _MARKUP.sub(r"\\\1", "".join(letter if letter.isprintable() else "�" for letter in text))
