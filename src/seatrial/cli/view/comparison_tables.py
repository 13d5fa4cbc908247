"""Tables of a comparison. Called by ``report``; depends on domain values and Rich only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.cli.view.figures import dollars, listing, percent, plain, plural, signed_points
from seatrial.domain.comparisons.comparison import Comparison, LeftOut
from seatrial.domain.comparisons.effort import EffortDifference, EffortDifferences
from seatrial.domain.comparisons.verdict import p_text, points, verdict
from seatrial.engine.reports.circumstances import ComparedCircumstances


def print_comparisons(console: Console, comparisons: Sequence[Comparison], every_task: bool = False) -> None:
    """Prints each comparison. Tasks without a difference are shown only with ``every_task``."""
    for position, comparison in enumerate(comparisons):
        if position:
            console.print()
        _print_comparison(console, comparison, every_task)


def _print_comparison(console: Console, comparison: Comparison, every_task: bool) -> None:
    console.print(plain(verdict(comparison), style="bold"))
    console.print(_summary(comparison))
    rows = [row for row in comparison.tasks if every_task or row.a_minus_b]
    if rows:
        console.print(_differences(comparison, every_task))
    same = len(comparison.tasks) - len(rows)
    if same:
        console.print(f"{plural(same, 'task')} without a difference.")
    for line in _left_out(comparison.left_out):
        console.print(line)


def _summary(comparison: Comparison) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    common = f"over {plural(len(comparison.tasks), 'common task')}, {comparison.basis} trials"
    grid.add_row("A", plain(f"{comparison.label_a}  {percent(comparison.score_a)} {common}"))
    grid.add_row("B", plain(f"{comparison.label_b}  {percent(comparison.score_b)} {common}"))
    if comparison.a_minus_b is not None:
        grid.add_row("B − A", _difference_text(comparison))
    if comparison.significance is not None:
        grid.add_row("test", _test_text(comparison))
    if comparison.mcnemar is not None:
        split = f"A ahead on {plural(comparison.ahead_a, 'task')}, B on {comparison.ahead_b}"
        grid.add_row("", f"{split}: {p_text(comparison.mcnemar.p)} ({comparison.mcnemar.test})")
    for name, text in _efforts(comparison.efforts):
        grid.add_row(name, text)
    if comparison.detectable is not None:
        source = "stated default variances" if comparison.variances.assumed else "the spread of these trials"
        seen = f"{points(comparison.detectable)} points is the smallest difference seen with a chance of 80 %"
        grid.add_row("power", f"{seen}, from {source}")
    return grid


def _difference_text(comparison: Comparison) -> str:
    difference = signed_points(-(comparison.a_minus_b or 0.0))
    interval = comparison.interval
    if interval is None:
        return f"{difference} points (no interval: {comparison.unavailable['interval']})"
    ends = f"{points(-interval.high)} to {points(-interval.low)}"
    other = comparison.bootstrap
    drawn = f", by bootstrap {points(-other.high)} to {points(-other.low)}" if other else ""
    return f"{difference} points, 95 % interval {ends}{drawn}"


def _efforts(efforts: EffortDifferences) -> list[tuple[str, str]]:
    """Means per trial over the common tasks."""
    kinds = (
        ("cost", efforts.cost_usd, dollars),
        ("tokens", efforts.tokens, _tokens),
        ("time", efforts.seconds, _seconds),
    )
    return [
        (name, f"{_effort_text(found, text)} (per trial)" if found is not None else "not reported by both sides")
        for name, found, text in kinds
    ]


def _effort_text(found: EffortDifference, text: Callable[[float], str]) -> str:
    change = f"A {text(found.a)}, B {text(found.b)}: {_signed(-found.a_minus_b, text)}"
    if found.interval is None:
        return change
    ends = f"{_signed(-found.interval.high, text)} to {_signed(-found.interval.low, text)}"
    return f"{change}, 95 % interval {ends}"


def _tokens(number: float) -> str:
    return f"{number:,.0f}"


def _seconds(number: float) -> str:
    return f"{number:,.1f} s"


def _signed(value: float, text: Callable[[float], str]) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{text(abs(value))}"


def print_circumstances(console: Console, found: ComparedCircumstances) -> None:
    """What else differs between the sides, if anything does."""
    for sentence in found.noise:
        console.print(plain(sentence, style="yellow"))
    differing = [trait for trait in found.traits if trait.differs]
    if not differing:
        console.print("\nNothing else differs in what is known of the sides.", style="dim")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("what else differs", no_wrap=True)
    for side in found.sides:
        table.add_column(plain(side.label), overflow="fold")
    for trait in differing:
        table.add_row(plain(trait.name), *(plain(value or "–") for value in trait.values))
    console.print()
    console.print(table)
    read = sum(side.sampled for side in found.sides)
    if read:
        console.print(f"Versions and infrastructure are those of {plural(read, 'sampled trial')}.", style="dim")


def _test_text(comparison: Comparison) -> str:
    found = comparison.significance
    assert found is not None
    drawn = f", {found.patterns:,} patterns drawn" if found.patterns else ""
    corrected = (
        f"; {p_text(comparison.p_holm)} after Holm over {comparison.pairs} pairs"
        if comparison.p_holm is not None
        else ""
    )
    return f"{p_text(found.p)} ({found.test}{drawn}){corrected}"


def _differences(comparison: Comparison, every_task: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("task", no_wrap=True, overflow="ellipsis", min_width=8)
    for name in ("A", "B", "B − A"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison.tasks:
        if every_task or row.a_minus_b:
            style = "red" if row.a_minus_b > 0 else "green" if row.a_minus_b < 0 else ""
            table.add_row(
                plain(row.task),
                f"{row.passed_a}/{row.trials_a}",
                f"{row.passed_b}/{row.trials_b}",
                Text(signed_points(-row.a_minus_b), style=style),
            )
    return table


def _left_out(left_out: LeftOut) -> list[Text]:
    reasons = (
        ("Only in A", left_out.only_a),
        ("Only in B", left_out.only_b),
        ("Same name, other content (--by-name compares them anyway)", left_out.changed),
        ("Without a valid trial on one side", left_out.no_valid_trial),
    )
    return [plain(f"{reason}: {listing(names)}", style="yellow") for reason, names in reasons if names]
