"""The output of ``seatrial leaderboard``: one table for each set of tasks, then what one must know to read it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.charts.words import shown
from seatrial.cli.view.figures import NOTHING, dollars, estimate, percent, plain, plural
from seatrial.domain.reports.leaderboard import Board, Entry, Leaderboard


def print_leaderboard(console: Console, found: Leaderboard) -> None:
    if not found.boards:
        console.print("No job matches. Start one with: seatrial run PATH -d DATASET")
    for board in found.boards:
        console.print(plain(shown(board.label), style="bold"))
        console.print(_table(board))
        for line in _remarks(board):
            console.print(line)
        console.print()
    console.print(plain(f"{plural(found.jobs, 'job')}; rules of {found.rules} {found.version}."))
    if found.older:
        console.print(plain(f"{plural(found.older, 'older job')} not looked at: choose with --since.", style="yellow"))


def _table(board: Board) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("configuration", overflow="fold", min_width=12)
    for name in ("score", "coverage", "k", "$/trial", "job"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in board.entries:
        table.add_row(*_cells(each))
    return table


def _cells(each: Entry) -> tuple[Text, ...]:
    job_score = each.shown
    line = job_score.score
    score = "not scored" if line.value is None else estimate(line.value, line.low, line.high)
    jobs = f"{job_score.job} (+{len(each.others)})" if each.others else str(job_score.job)
    return (
        Text(NOTHING if each.rank is None else str(each.rank)),
        plain(shown(each.label)),
        Text(score),
        Text(percent(line.coverage)),
        Text(str(job_score.attempts)),
        Text(dollars(job_score.cost_per_trial)),
        Text(jobs),
    )


def _remarks(board: Board) -> Iterator[Text]:
    for each in board.entries:
        if each.shown.why_not:
            yield plain(f"  {shown(each.label)}: not eligible, breaks {'; '.join(each.shown.why_not)}")
        for notice in each.shown.notices:
            yield plain(f"  {shown(each.label)}, job {each.shown.job}: {notice}", style="yellow")
        if each.others:
            yield plain(f"  {shown(each.label)}: job {each.shown.job} is {each.chosen}; {_others(each)}")


def _others(each: Entry) -> str:
    told = [
        f"job {other.job} {percent(other.score.value) if other.score.value is not None else 'not scored'}"
        for other in each.others[:5]
    ]
    more = f" and {len(each.others) - 5} more" if len(each.others) > 5 else ""
    return f"others: {', '.join(told)}{more}"
