"""The output of ``seatrial report``: every number of a job with its label, or the reason why it is missing.

Depends on domain values and Rich only.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from seatrial.charts.summary import status_line
from seatrial.cli.view.figures import NOTHING, counted, dollars, percent, plain, plural, tokens
from seatrial.cli.view.progress import duration
from seatrial.cli.view.tables import changes, gaps, headline, rules_line, task_table, test_table
from seatrial.domain.job import Job
from seatrial.domain.reports.report import ConfigurationReport, JobReport
from seatrial.domain.reports.score import Bounds, Score
from seatrial.domain.statistics.estimates import Interval, Quantiles


def print_report(console: Console, job: Job, report: JobReport) -> None:
    """The numbers of each configuration, then tasks, tests and rules."""
    console.print(plain(f"job {job.id} ({job.title}): {status_line(report.counts)}", style="bold"))
    if not report.complete:
        console.print("Still running: scores are over the trials that have ended, coverage over all that are planned.")
    for configuration in report.configurations:
        console.print()
        console.print(plain(configuration.label, style="bold"))
        console.print(headline(configuration))
        console.print(Padding(_details(configuration), (0, 0, 0, 2), expand=False))
    console.print()
    console.print(task_table(report, console.width))
    if report.tests:
        console.print(test_table(report))
    for line in (*changes(report), *gaps(report)):
        console.print(line)
    if report.rules:
        console.print(rules_line(report.rules))


def _details(each: ConfigurationReport) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, score in (("score", each.valid), ("leaderboard", each.leaderboard)):
        grid.add_row(name, _score_text(score))
        sampled, fixed = score.tasks_as_sample, score.tasks_fixed
        grid.add_row("", f"tasks as a sample: {_interval_text(sampled, score.unavailable.get('tasks_as_sample'))}")
        grid.add_row("", f"tasks fixed, run to run: {_interval_text(fixed, score.unavailable.get('tasks_fixed'))}")
        grid.add_row("", _pass_rates(score))
    line = each.headline
    grid.add_row("coverage", f"{percent(line.coverage)}: {line.valid} valid of {line.planned} planned")
    if each.bounds is not None:
        grid.add_row("bounds", _bounds_text(each.bounds))
    grid.add_row("mean reward", NOTHING if each.mean_reward is None else f"{each.mean_reward:.3f}")
    grid.add_row("errors", plain(counted(each.counts.errors)))
    grid.add_row("marks", plain(counted(each.counts.marks)))
    grid.add_row("time", _time_text(each))
    grid.add_row("tokens", _token_text(each))
    grid.add_row("cost", _cost_text(each))
    for name, spread, text in (
        ("seconds", each.spread.seconds, duration),
        ("tokens", each.spread.tokens, lambda value: tokens(round(value))),
        ("cost", each.spread.cost_usd, dollars),
    ):
        if spread is not None and spread.values > 1:
            grid.add_row(f"{name} per trial", _spread_text(spread, text))
    return grid


def _score_text(score: Score) -> str:
    over = f"over {plural(score.tasks, 'task')}, {plural(score.trials, 'trial')}"
    return f"{percent(score.value)} {over}" if score.value is not None else score.unavailable["value"]


def _interval_text(interval: Interval | None, reason: str | None) -> str:
    if interval is None:
        return f"not available, {reason}"
    level = f"{100 * interval.level:.0f} %"
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} % ({level} {interval.method})"


def _pass_rates(score: Score) -> str:
    known = [rate for rate in score.pass_rates if rate.pass_at_k is not None]
    if not known:
        return "pass@k: not available"
    at = "  ".join(f"pass@{rate.k} {percent(rate.pass_at_k)}" for rate in known)
    every = "  ".join(f"pass^{rate.k} {percent(rate.pass_hat_k)}" for rate in known if rate.k > 1)
    return f"{at}  {every}".rstrip()


def _bounds_text(bounds: Bounds) -> str:
    without = f"{plural(bounds.trials, 'trial')} ended without a valid result"
    return f"{percent(bounds.low)} if all had failed, {percent(bounds.high)} if all had passed: {without}"


def _time_text(each: ConfigurationReport) -> str:
    if each.durations is None:
        return NOTHING
    found = each.durations
    parts = (("median", found.p50), ("p90", found.p90), ("longest", found.longest), ("in all", found.total))
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts)


def _token_text(each: ConfigurationReport) -> str:
    spent = each.spending
    if spent.tokens is None:
        return NOTHING
    return f"{tokens(spent.input_tokens)} in ({tokens(spent.cached_tokens)} cached), {tokens(spent.output_tokens)} out"


def _spread_text(spread: Quantiles, text: Callable[[float], str]) -> str:
    parts = (("p10", spread.p10), ("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99))
    return ", ".join(f"{name} {text(value)}" for name, value in parts)


def _cost_text(each: ConfigurationReport) -> str:
    spent = each.spending
    if spent.cost_usd is None:
        return spent.unavailable["cost_usd"]
    success = (
        f"{dollars(spent.cost_per_success)} per success"
        if spent.cost_per_success is not None
        else "none of them passed"
    )
    silent = each.counts.ended - spent.priced
    missing = f" ({plural(silent, 'trial')} did not report a cost)" if silent > 0 else ""
    return f"{dollars(spent.cost_usd)}, {dollars(spent.cost_per_trial)} per trial, {success}{missing}"
