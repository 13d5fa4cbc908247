"""Tables and headlines of a job. ``print_run`` ends ``seatrial run``; ``details`` uses the rest.

Depends on domain values and Rich only. On a narrow terminal the least important columns are dropped first; numbers are
never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.charts.summary import status_line
from seatrial.cli.view.figures import (
    NOTHING,
    counted,
    dollars,
    estimate,
    listing,
    percent,
    plain,
    plural,
    span,
    tokens,
)
from seatrial.cli.view.progress import duration
from seatrial.domain.job import Job
from seatrial.domain.reports.matrix import TestLine
from seatrial.domain.reports.report import ConfigurationReport, JobReport, TaskReport
from seatrial.domain.reports.rules import RuleCheck
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.trial import Mark, Outcome
from seatrial.ports.store import TrialRow

_EVERY_COLUMN = ("passed", "score", "95 %", "time", "tokens", "cost", "errors")
_DISPENSABLE = ("95 %", "tokens", "cost", "time", "errors")
"""Columns to drop, in this order, if the terminal is too narrow. Errors are also listed below the table."""
_GAP = 2
_MOST_REASONS = 5
_NAME_WIDTH, _NESTED_NAME_WIDTH = 18, 45
_BESIDE_NAMES = ("passed", "score", "time")


def print_run(console: Console, job: Job, report: JobReport, rows: Sequence[TrialRow], wall_seconds: float) -> None:
    """The result of ``seatrial run``: a table of task × agent × model, then one headline per configuration."""
    console.print(task_table(report, console.width))
    for line in headlines(report):
        console.print(line)
    for line in (*changes(report), *gaps(report), *notes(report), *reasons(rows)):
        console.print(line)
    console.print(plain(f"job {job.id}: {status_line(report.counts)}; {duration(wall_seconds)} in total"))
    if job.spec.budget:
        over = sum(Mark.OVER_BUDGET in row.result.marks for row in rows if row.result is not None)
        console.print(plain(f"budget: {job.spec.budget.words}; {plural(over, 'trial')} over budget"))


def task_table(report: JobReport, width: int) -> Table:
    """One row per task and configuration. Scores count valid trials only; infrastructure errors have their own
    column."""
    several = len(report.configurations) > 1
    rows = sorted(
        ((task, each.label) for each in report.configurations for task in each.tasks), key=lambda row: row[0].task
    )
    cells = [_task_cells(task) for task, _ in rows]
    widths = _widths(cells)
    nested = several and _needs_nesting(rows, widths, width)
    headings = ("task", "agent / model") if several and not nested else ("task",)
    names = [_names(task, label, several, nested) for task, label in rows]
    most = _NESTED_NAME_WIDTH if nested else _NAME_WIDTH
    taken = sum(_comfortable(column, most) + _GAP for column in zip(*names, strict=True))
    columns = _fitting_columns(widths, width - taken)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name in headings:
        table.add_column(name, overflow="fold", min_width=6)
    for name in columns:
        errors = name == "errors"
        table.add_column(name, justify="left" if errors else "right", no_wrap=not errors, min_width=widths[name])
    above = ""
    for (task, _), who, row in zip(rows, names, cells, strict=True):
        if nested and task.task != above:
            above = task.task
            table.add_row(plain(task.task))
        table.add_row(*who, *(row[column] for column in columns))
    return table


def _names(task: TaskReport, label: str, several: bool, nested: bool) -> tuple[Text, ...]:
    """Below the task's name if there is no room for both beside each other."""
    if nested:
        return (plain(f"  {label}"),)
    return (plain(task.task), plain(label)) if several else (plain(task.task),)


def _needs_nesting(rows: Sequence[tuple[TaskReport, str]], widths: dict[str, int], width: int) -> bool:
    """Whether names beside each other would have to wrap."""
    longest = max(len(task.task) for task, _ in rows) + max(len(label) for _, label in rows)
    numbers = sum(widths[column] + _GAP for column in _BESIDE_NAMES if column in widths)
    return longest + 2 * _GAP + numbers > width


def test_table(report: JobReport) -> Table:
    """Each test of each task, by configuration: how many trials passed it, of those that ran it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("test", overflow="fold")
    labels = [each.label for each in report.configurations]
    for label in labels:
        table.add_column(plain(label, style="bold"), justify="right", overflow="fold")
    task = None
    for line in report.tests:
        if line.task != task:
            task = line.task
            table.add_row(plain(task, style="bold"))
        table.add_row(plain(f"  {line.test}"), *(_test_cell(line, label) for label in labels))
    return table


def headlines(report: JobReport) -> Iterator[Text]:
    for configuration in report.configurations:
        label = plain(f"{configuration.label}  ", style="bold")
        yield label.append_text(headline(configuration))


def headline(configuration: ConfigurationReport) -> Text:
    """``62.4 % ± 4.1  coverage 98.1 %  leaderboard 61.2 %  pass@5 74.0 %  $41.20``."""
    parts = list(score_parts(configuration.headline))
    rates = configuration.valid.pass_rates
    best = next((rate for rate in reversed(rates) if rate.pass_at_k is not None and rate.k > 1), None)
    if best is not None:
        parts.append(f"pass@{best.k} {percent(best.pass_at_k)}")
    if configuration.spending.cost_usd is not None:
        parts.append(dollars(configuration.spending.cost_usd))
    return Text("  ".join(parts))


def changes(report: JobReport) -> Iterator[Text]:
    """Attempts that were added to the plan or removed from it, and trials that were cancelled."""
    for sentence in report.notices:
        yield plain(sentence, style="yellow")
    for each in report.configurations:
        if each.added is not None:
            cost = each.added.spending.cost_usd
            spent = f"; {dollars(cost)}" if cost is not None else ""
            yield plain(f"{each.label}: added {status_line(each.added.counts)}{spent}")


def gaps(report: JobReport) -> Iterator[Text]:
    """Tasks for which a configuration has no valid trial."""
    for each in report.configurations:
        if each.without_valid_trial:
            gap = f"no valid trial of {listing(each.without_valid_trial)}: not in the score, 0 on the leaderboard"
            yield plain(f"{each.label}: {gap}", style="yellow")


def notes(report: JobReport) -> Iterator[Text]:
    """Notes on errors and other findings."""
    for each in report.configurations:
        who = f"{each.label}: " if len(report.configurations) > 1 else ""
        if each.counts.errors:
            yield plain(f"{who}errors by cause: {counted(each.counts.errors)}", style="yellow")
        if each.counts.marks:
            yield plain(f"{who}marks: {counted(each.counts.marks)}")


def reasons(rows: Sequence[TrialRow]) -> Iterator[Text]:
    """Error messages, the most frequent first, each with an example trial."""
    said: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row.trial.outcome is Outcome.ERROR and row.result is not None and row.result.message:
            said.setdefault((str(row.trial.cause), row.result.message), []).append(row.trial.id)
    for (cause, message), trials in sorted(said.items(), key=lambda entry: -len(entry[1]))[:_MOST_REASONS]:
        yield plain(f"  {cause}: {message} ({plural(len(trials), 'trial')}; seatrial trial show {trials[0]})")


def rules_line(check: RuleCheck) -> Text:
    name = f"{check.rules} {check.version}"
    if check.kept:
        return plain(" ".join((f"Rules of {name}: kept.", *check.notes)), style="green")
    broken = "; ".join(f"{rule.rule} ({rule.found})" for rule in check.broken)
    return plain(" ".join((f"Rules of {name} broken: {broken}.", *check.notes)), style="yellow")


def score_parts(line: ScoreLine) -> Iterator[str]:
    """The score over valid trials, how much of the plan it covers, what leaderboards would say and, if many trials have
    no valid result, how far the score could be off."""
    if line.value is None:
        yield "not scored"
    else:
        yield estimate(line.value, line.low, line.high) + (
            f" so far, {line.ended} of {line.planned}" if line.so_far else ""
        )
    yield f"coverage {percent(line.coverage)}"
    if line.value is not None and line.leaderboard is not None:
        yield f"leaderboard {percent(line.leaderboard)}"
    if line.bounds is not None and line.value is not None:
        yield f"bounds {100 * line.bounds.low:.1f} to {percent(line.bounds.high)}"


def _widths(cells: Sequence[dict[str, Text]]) -> dict[str, int]:
    """Widths of the non-empty columns. Error causes may wrap; numbers stay on one line."""
    telling = [column for column in _EVERY_COLUMN if any(row[column].plain != NOTHING for row in cells)]
    widths = {column: max(len(column), *(len(row[column]) for row in cells)) for column in telling}
    if "errors" in widths:
        causes = [cause for row in cells for cause in row["errors"].plain.split(", ")]
        widths["errors"] = max(len("errors"), *(len(f"{cause},") for cause in causes))
    return widths


def _fitting_columns(widths: dict[str, int], room: int) -> tuple[str, ...]:
    """The columns that fit. Columns are dropped in the order of ``_DISPENSABLE``."""
    columns = list(widths)
    for name in _DISPENSABLE:
        if sum(widths[column] + _GAP for column in columns) <= room:
            break
        if name in columns:
            columns.remove(name)
    return tuple(columns)


def _comfortable(names: Sequence[Text], most: int) -> int:
    """The preferred width of a column of names; longer names wrap and are never cut."""
    return min(most, max((len(name) for name in names), default=0))


def _task_cells(task: TaskReport) -> dict[str, Text]:
    counts = task.counts
    style = "green" if counts.passed and counts.passed == counts.valid else ""
    return {
        "passed": Text(f"{counts.passed}/{counts.valid}", style=style),
        "score": Text(percent(task.valid)),
        "95 %": Text(span(task.interval)),
        "time": Text(duration(task.durations.p50) if task.durations else NOTHING),
        "tokens": Text(tokens(task.spending.tokens)),
        "cost": Text(dollars(task.spending.cost_usd)),
        "errors": plain(counted(task.counts.errors), style="yellow" if task.counts.errors else ""),
    }


def _test_cell(line: TestLine, label: str) -> Text:
    cell = line.cells.get(label)
    if cell is None:
        return Text(NOTHING)
    if not cell.run:
        return Text("skipped")
    return Text(f"{cell.passed}/{cell.run}", style="green" if cell.passed == cell.run else "")
