"""Score against what a trial takes, in dollars or in time, with the Pareto front."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seatrial.charts.canvas import Canvas, axis_below, axis_beside, empty, legend, shape_of, tone_of, whole_percent
from seatrial.charts.scale import amounts, shares
from seatrial.charts.scene import Chart, ChartName, ChartTable, Drawing, Line, Sign, Tone
from seatrial.charts.words import shown
from seatrial.domain.reports.figures import NOTHING, dollars, duration, estimate
from seatrial.domain.reports.pictures import Rival, dollars_per_trial, median_seconds, rivals
from seatrial.domain.reports.report import ConfigurationReport, JobReport

_LEFT, _TOP = 52.0, 14.0


@dataclass(frozen=True)
class Price:
    name: ChartName
    title: str
    axis: str
    missing: str
    of: Callable[[ConfigurationReport], float | None]
    text: Callable[[float], str]

    @property
    def summary(self) -> str:
        return (
            f"The score of each configuration over its {self.axis}, with the 95 % interval over tasks. The line is the "
            "Pareto front: configurations that no other beats in both."
        )


COST = Price(
    ChartName.COST,
    "Score against dollars",
    "mean cost per trial",
    "cost not reported",
    dollars_per_trial,
    dollars,
)
TIME = Price(
    ChartName.TIME,
    "Score against time",
    "median time per trial",
    "no trial ended by itself",
    median_seconds,
    duration,
)


def tradeoff(report: JobReport, width: float, price: Price) -> Chart:
    found = rivals(report, price.of)
    scored = any(each.headline.value is not None for each in report.configurations)
    if found:
        drawing = _draw(report, found, width, price)
    elif scored:
        drawing = empty(width, f"Nothing to show: {price.missing}.")
    else:
        drawing = empty(width, "Nothing is scored: no trial has a valid result.")
    fronts = {rival.configuration.label: "yes" if rival.on_front else "no" for rival in found}
    return Chart(
        name=price.name,
        title=price.title,
        summary=price.summary,
        notes=tuple(_notes(report, price)),
        drawing=drawing,
        table=ChartTable(
            columns=("configuration", "score", price.axis, "on the front"),
            rows=tuple(_cells(each, price, fronts) for each in report.configurations),
        ),
    )


def _draw(report: JobReport, found: tuple[Rival, ...], width: float, price: Price) -> Drawing:
    canvas = Canvas(width)
    bottom = _TOP + min(300.0, 0.6 * width)
    across = amounts([rival.price for rival in found], _LEFT, canvas.right - 10)
    up = shares(bottom, _TOP)
    axis_beside(canvas, up, _LEFT, canvas.right, whole_percent)
    axis = f"{price.axis}, logarithmic" if across.logarithmic else price.axis
    axis_below(canvas, across, _TOP, bottom, price.text, axis)
    front = sorted((rival.price, rival.score) for rival in found if rival.on_front)
    if len(front) > 1:
        points = tuple((across.at(x), up.at(y)) for x, y in front)
        canvas.add(Line(points=points, tone=Tone.SOFT, width=1.5, dashed=True))
    numbers = {each.label: number for number, each in enumerate(report.configurations)}
    for rival in found:
        line, number = rival.configuration.headline, numbers[rival.configuration.label]
        x, tone = across.at(rival.price), tone_of(number)
        marks = [Sign(x=x, y=up.at(rival.score), shape=shape_of(number), tone=tone, size=6.5)]
        if line.low is not None and line.high is not None:
            whisker = Line(points=((x, up.at(line.low)), (x, up.at(line.high))), tone=tone, width=1.5)
            canvas.spot(_description(rival, price), whisker, *marks)
        else:
            canvas.spot(_description(rival, price), *marks)
    entries = [
        (numbers[r.configuration.label], f"{shown(r.configuration.label)}{' · on the front' if r.on_front else ''}")
        for r in found
    ]
    return canvas.drawing(legend(canvas, bottom + 52, entries))


def _description(rival: Rival, price: Price) -> str:
    line = rival.configuration.headline
    front = ", on the Pareto front" if rival.on_front else ""
    score = estimate(line.value, line.low, line.high)
    return f"{shown(rival.configuration.label)}: {score}, {price.axis} {price.text(rival.price)}{front}"


def _cells(each: ConfigurationReport, price: Price, fronts: dict[str, str]) -> tuple[str, ...]:
    line, value = each.headline, price.of(each)
    score = "not scored" if line.value is None else estimate(line.value, line.low, line.high)
    return (
        shown(each.label),
        score,
        price.missing if value is None else price.text(value),
        fronts.get(each.label, NOTHING),
    )


def _notes(report: JobReport, price: Price) -> list[str]:
    notes = []
    for each in report.configurations:
        ended, priced = each.counts.ended, each.spending.priced
        if each.headline.value is None:
            notes.append(f"{shown(each.label)} is not shown: not scored.")
        elif price.of(each) is None:
            notes.append(f"{shown(each.label)} is not shown: {price.missing}.")
        elif price is COST and priced < ended:
            notes.append(f"{shown(each.label)}: {ended - priced} of {ended} ended trials did not report a cost.")
    return notes
