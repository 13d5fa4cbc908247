"""A report as Markdown, for a pull request: the same numbers as on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.charts.summary import HEADINGS, status_line, summary_cells
from seatrial.domain.job import Job
from seatrial.domain.reports.report import ConfigurationReport, JobReport

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!&~])")


def report_lines(job: Job, report: JobReport) -> Iterator[str]:
    yield f"**job {job.id} ({_plain(job.title)})**: {status_line(report.counts)}"
    yield ""
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{' --- |' * len(HEADINGS)}"
    for each in report.configurations:
        yield f"| {' | '.join(_cells(each))} |"
    for notice in report.notices:
        yield ""
        yield notice


def _cells(each: ConfigurationReport) -> tuple[str, ...]:
    label, *numbers = summary_cells(each)
    return (_plain(label), *numbers)


def _plain(text: str) -> str:
    """Names are untrusted: nothing in them is markup."""
    return _MARKUP.sub(r"\\\1", "".join(letter if letter.isprintable() else "�" for letter in text))
