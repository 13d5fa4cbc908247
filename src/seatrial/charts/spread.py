"""How duration and tokens are spread over the trials of each configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seatrial.charts.canvas import MARGIN, Canvas, axis_below, empty, shape_of, tone_of
from seatrial.charts.scale import Scale, amounts
from seatrial.charts.scene import Anchor, Box, Chart, ChartName, ChartTable, Drawing, Label, Line, Mark, Shape, Sign
from seatrial.charts.words import fitted, shown
from seatrial.domain.reports.figures import NOTHING, duration, tokens
from seatrial.domain.reports.report import ConfigurationReport, JobReport
from seatrial.domain.statistics.estimates import Quantiles

_COLUMNS = ("configuration", "trials", "10 %", "25 %", "median", "75 %", "90 %", "99 %", "largest")
_ROW, _TOP, _TALL = 52.0, 8.0, 14.0


@dataclass(frozen=True)
class Amount:
    name: ChartName
    title: str
    what: str
    axis: str
    missing: str
    of: Callable[[ConfigurationReport], Quantiles | None]
    text: Callable[[float], str]

    @property
    def summary(self) -> str:
        return (
            f"{self.what} Line: from 10 to 90 % of the trials. Box: the middle half. Sign: the median. Ring: 99 %; "
            "cross: the largest."
        )


DURATIONS = Amount(
    ChartName.DURATIONS,
    "Duration of trials",
    "Duration of the last try of trials that ended by themselves.",
    "time per trial",
    "no trial ended by itself",
    lambda each: each.spread.seconds,
    duration,
)
TOKENS = Amount(
    ChartName.TOKENS,
    "Tokens of trials",
    "Input and output tokens over all tries of a trial.",
    "tokens per trial",
    "no trial reported tokens",
    lambda each: each.spread.tokens,
    lambda value: tokens(round(value)),
)


def spread(report: JobReport, width: float, amount: Amount) -> Chart:
    rows = [(number, each, found) for number, each in enumerate(report.configurations) if (found := amount.of(each))]
    missing = [each for each in report.configurations if amount.of(each) is None]
    return Chart(
        name=amount.name,
        title=amount.title,
        summary=amount.summary,
        notes=tuple(f"{shown(each.label)} is not shown: {amount.missing}." for each in missing),
        drawing=_draw(rows, width, amount) if rows else empty(width, f"Nothing to show: {amount.missing}."),
        table=ChartTable(columns=_COLUMNS, rows=tuple(_cells(each, amount) for each in report.configurations)),
    )


def _draw(rows: Sequence[tuple[int, ConfigurationReport, Quantiles]], width: float, amount: Amount) -> Drawing:
    canvas = Canvas(width)
    reach = [value for _, _, found in rows for value in (found.p10, found.largest)]
    scale = amounts(reach, MARGIN + 8, canvas.right - 14)
    bottom = _TOP + _ROW * len(rows)
    axis = f"{amount.axis}, logarithmic" if scale.logarithmic else amount.axis
    axis_below(canvas, scale, _TOP, bottom, amount.text, axis)
    for place, (number, each, found) in enumerate(rows):
        _row(canvas, scale, number, each, found, _TOP + _ROW * place, amount)
    return canvas.drawing(bottom + 42)


def _row(
    canvas: Canvas, scale: Scale, number: int, each: ConfigurationReport, found: Quantiles, top: float, amount: Amount
) -> None:
    told = f"median {amount.text(found.p50)}"
    tone, y = tone_of(number), top + 34
    low, high = scale.at(found.p25), scale.at(found.p75)
    marks: list[Mark] = [
        Label(x=MARGIN, y=top + 16, text=fitted(each.label, canvas.right - MARGIN - 8 * len(told)), bold=True),
        Label(x=canvas.right, y=top + 16, text=told, anchor=Anchor.END),
        Line(points=((scale.at(found.p10), y), (scale.at(found.p90), y)), tone=tone, width=2),
        Box(x=low, y=y - _TALL / 2, width=max(1.0, round(high - low, 2)), height=_TALL, tone=tone, strength=0.3),
        Sign(x=scale.at(found.p50), y=y, shape=shape_of(number), tone=tone, size=5.5),
    ]
    if found.values > 1:
        marks.append(Sign(x=scale.at(found.p99), y=y, shape=Shape.RING, tone=tone, size=3.5))
        marks.append(Sign(x=scale.at(found.largest), y=y, shape=Shape.CROSS, tone=tone, size=3.5))
    named = (("10 %", found.p10), ("median", found.p50), ("90 %", found.p90), ("99 %", found.p99))
    values = ", ".join(f"{name} {amount.text(value)}" for name, value in named)
    canvas.spot(f"{shown(each.label)}: {values} over {found.values:,} trials", *marks)


def _cells(each: ConfigurationReport, amount: Amount) -> tuple[str, ...]:
    found = amount.of(each)
    if found is None:
        return (shown(each.label), amount.missing, *([NOTHING] * 7))
    values = (found.p10, found.p25, found.p50, found.p75, found.p90, found.p99, found.largest)
    return (shown(each.label), f"{found.values:,}", *map(amount.text, values))
