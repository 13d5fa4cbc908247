"""A report as one HTML file: no script, no request, both themes. Opens from a disk or an attachment.

Its own content policy allows the one style sheet in it and nothing else, so that a mistake here could run nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from seatrial.charts.draw import Subject, draw_all
from seatrial.charts.markup import Markup, element, joined
from seatrial.charts.scene import Chart, ChartTable
from seatrial.charts.styles import HTML_STYLES
from seatrial.charts.summary import HEADINGS, status_line, summary_cells
from seatrial.charts.svg import svg
from seatrial.charts.words import shown
from seatrial.domain.reports.figures import percent, plural
from seatrial.domain.reports.report import JobReport

_HASH = base64.b64encode(hashlib.sha256(HTML_STYLES.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


def report_page(subject: Subject) -> str:
    job = subject.job
    title = f"{shown(job.title)} (job {job.id})"
    head = joined(
        (
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Markup('<meta name="referrer" content="no-referrer">'),
            element("title", f"{title} · Seatrial"),
            element("style", Markup(HTML_STYLES)),
        )
    )
    body = element("main", element("h1", title), *_top(subject), *_pictures(subject), *_tests(subject.report))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{element("body", body)}</html>\n'


def _top(subject: Subject) -> Iterator[Markup]:
    spec, report = subject.job.spec, subject.report
    dataset = f" of {shown(spec.dataset)}" if spec.dataset else ""
    created = f"{subject.job.created_at:%Y-%m-%d %H:%M} UTC"
    tasks = f"{plural(len(spec.tasks), 'task')}{dataset}, {plural(spec.attempts, 'attempt')} each, created {created}"
    yield element("p", f"{status_line(report.counts)}. {tasks}.", class_="soft")
    for notice in report.notices:
        yield element("p", notice, class_="note")
    rows = tuple((shown(label), *cells) for label, *cells in map(summary_cells, report.configurations))
    yield _table(ChartTable(columns=HEADINGS, rows=rows), "Scores")
    if report.rules:
        broken = "; ".join(f"{rule.rule} ({rule.found})" for rule in report.rules.broken)
        kept = f"broken: {broken}" if broken else "kept"
        yield element("p", f"Rules of {report.rules.rules} {report.rules.version}: {shown(kept, 2000)}.", class_="soft")


def _pictures(subject: Subject) -> Iterator[Markup]:
    for chart in draw_all(subject).items:
        yield _figure(chart)


def _figure(chart: Chart) -> Markup:
    notes = (element("p", note, class_="note") for note in chart.notes)
    caption = element("figcaption", element("h2", chart.title), element("p", chart.summary), *notes)
    table = element("details", element("summary", f"Table: {chart.title}"), _table(chart.table, chart.title))
    return element("figure", caption, svg(chart), table)


def _tests(report: JobReport) -> Iterator[Markup]:
    if not report.tests:
        return
    labels = [each.label for each in report.configurations]
    rows = tuple(
        (
            shown(line.task),
            shown(line.test),
            *(
                percent(cell.passed / cell.run) if (cell := line.cells.get(label)) and cell.run else "–"
                for label in labels
            ),
        )
        for line in report.tests
    )
    table = ChartTable(columns=("task", "test", *map(shown, labels)), rows=rows)
    yield element("details", element("summary", "Tests: share of trials that passed each"), _table(table, "Tests"))


def _table(table: ChartTable, name: str) -> Markup:
    head = element("tr", *(element("th", column, scope="col") for column in table.columns))
    rows = (element("tr", *(element("td", cell) for cell in row)) for row in table.rows)
    found = element("table", element("thead", head), element("tbody", *rows), aria_label=name)
    return element("div", found, class_="wide", tabindex="0", role="region", aria_label=f"Table: {name}")
