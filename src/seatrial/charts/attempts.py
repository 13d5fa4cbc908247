"""How the pass rate grows with the number of attempts: pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.charts.canvas import Canvas, axis_beside, empty, legend, shape_of, tone_of, whole_percent
from seatrial.charts.scale import Scale, shares
from seatrial.charts.scene import Anchor, Chart, ChartName, ChartTable, Drawing, Label, Line, Sign, Tone
from seatrial.charts.words import shown
from seatrial.domain.reports.figures import NOTHING, percent
from seatrial.domain.reports.report import ConfigurationReport, JobReport
from seatrial.domain.reports.score import PassRate

_SUMMARY = (
    "Solid, rising: pass@k, the chance that at least one of k attempts passes. Dashed, falling: pass^k, the chance "
    "that all k pass. Both begin at the score. The gap between them is what luck is worth. A k for which some task has "
    "too few valid trials is left out, never guessed."
)
_LEFT, _TOP = 52.0, 14.0


def attempts(report: JobReport, width: float) -> Chart:
    curves = [_known(each) for each in report.configurations]
    most = max((rate.k for curve in curves for rate in curve), default=0)
    if most > 1:
        drawing = _draw(report.configurations, curves, most, width)
    elif most == 1:
        drawing = empty(width, "One attempt: pass@k and pass^k need at least two valid trials of every task.")
    else:
        drawing = empty(width, "Nothing is scored: no trial has a valid result.")
    return Chart(
        name=ChartName.ATTEMPTS,
        title="Pass rate over attempts",
        summary=_SUMMARY,
        notes=tuple(note for each in report.configurations for note in _missing(each)),
        drawing=drawing,
        table=ChartTable(
            columns=("configuration", "k", "pass@k", "pass^k"),
            rows=tuple(row for each in report.configurations for row in _rows(each)),
        ),
    )


def _known(each: ConfigurationReport) -> list[PassRate]:
    return [rate for rate in each.valid.pass_rates if rate.pass_at_k is not None]


def _draw(
    configurations: Sequence[ConfigurationReport], curves: Sequence[list[PassRate]], most: int, width: float
) -> Drawing:
    canvas = Canvas(width)
    bottom = _TOP + min(280.0, 0.55 * width)
    across, up = Scale(1, most, _LEFT + 12, canvas.right - 12), shares(bottom, _TOP)
    axis_beside(canvas, up, _LEFT, canvas.right, whole_percent)
    middle = (across.start + across.end) / 2
    for k in sorted({rate.k for curve in curves for rate in curve}):
        canvas.add(Label(x=across.at(k), y=bottom + 15, text=str(k), tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True))
    canvas.add(Label(x=middle, y=bottom + 31, text="attempts, k", tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True))
    for number, (each, curve) in enumerate(zip(configurations, curves, strict=True)):
        _curve(canvas, across, up, number, each, curve)
    named = [(number, each.label) for number, each in enumerate(configurations) if curves[number]]
    return canvas.drawing(legend(canvas, bottom + 52, named))


def _curve(
    canvas: Canvas, across: Scale, up: Scale, number: int, each: ConfigurationReport, curve: list[PassRate]
) -> None:
    tone = tone_of(number)
    for sign, values, dashed in (
        ("@", [(rate.k, rate.pass_at_k) for rate in curve], False),
        ("^", [(rate.k, rate.pass_hat_k) for rate in curve], True),
    ):
        points = [(k, value) for k, value in values if value is not None]
        if len(points) > 1:
            line = tuple((across.at(k), up.at(value)) for k, value in points)
            canvas.add(Line(points=line, tone=tone, width=2, dashed=dashed))
        for k, value in points:
            mark = Sign(x=across.at(k), y=up.at(value), shape=shape_of(number), tone=tone, size=4.5)
            canvas.spot(f"{shown(each.label)}: pass{sign}{k} {percent(value)}", mark)


def _rows(each: ConfigurationReport) -> list[tuple[str, ...]]:
    return [
        (shown(each.label), str(rate.k), percent(rate.pass_at_k), percent(rate.pass_hat_k))
        for rate in each.valid.pass_rates
        if rate.pass_at_k is not None
    ] or [(shown(each.label), NOTHING, "not scored", "not scored")]


def _missing(each: ConfigurationReport) -> list[str]:
    """Why the curve ends before the planned number of attempts."""
    planned = max((task.counts.planned for task in each.tasks), default=0)
    known = max((rate.k for rate in _known(each)), default=0)
    short = [rate for rate in each.valid.pass_rates if rate.k == planned and rate.unavailable]
    return [f"{shown(each.label)}: k = {planned} {rate.unavailable}." for rate in short if known]
