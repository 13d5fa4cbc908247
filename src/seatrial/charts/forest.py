"""Scores of all configurations with both intervals, or why an interval is missing."""

from __future__ import annotations

from seatrial.charts.canvas import LETTER, MARGIN, SMALL, Canvas, axis_below, empty, shape_of, tone_of, whole_percent
from seatrial.charts.scale import Scale, shares
from seatrial.charts.scene import Anchor, Chart, ChartName, ChartTable, Label, Line, Mark, Sign, Tone
from seatrial.charts.words import fitted, shown
from seatrial.domain.reports.figures import estimate, percent, span
from seatrial.domain.reports.report import ConfigurationReport, JobReport
from seatrial.domain.statistics.estimates import Interval

_SUMMARY = (
    "The score of each configuration, best first, with two 95 % intervals. Solid: the tasks as a sample, how far the "
    "score could be off for other tasks of this kind. Dashed: tasks fixed, how much another run on the same tasks "
    "would differ."
)
_COLUMNS = ("configuration", "score", "tasks as a sample", "tasks fixed", "coverage", "errors as 0", "valid of planned")
_ROW, _TOP = 58.0, 30.0
_CAP = 4.0


def forest(report: JobReport, width: float) -> Chart:
    rows = report.configurations
    scored = any(each.headline.value is not None for each in rows)
    canvas = Canvas(width)
    scale = shares(MARGIN + 8, canvas.right - 14)
    bottom = _TOP + _ROW * len(rows)
    axis_below(canvas, scale, _TOP, bottom, whole_percent, "score over valid trials")
    _explain(canvas)
    for number, each in enumerate(rows):
        _row(canvas, scale, number, each, _TOP + _ROW * number)
    drawing = canvas.drawing(bottom + 42) if scored else empty(width, "Nothing is scored: no trial has a valid result.")
    table = ChartTable(columns=_COLUMNS, rows=tuple(_cells(each) for each in rows))
    return Chart(
        name=ChartName.FOREST,
        title="Scores with both intervals",
        summary=_SUMMARY,
        notes=tuple(note for each in rows for note in _notes(each)),
        drawing=drawing,
        table=table,
    )


def _explain(canvas: Canvas) -> None:
    """The legend on top."""
    second = canvas.width / 2
    canvas.add(
        Line(points=((MARGIN, 12), (MARGIN + 22, 12)), tone=Tone.INK, width=3),
        Line(points=((second, 12), (second + 22, 12)), tone=Tone.INK, width=1.5, dashed=True),
    )
    canvas.say(MARGIN + 28, 16, "tasks as a sample", room=second - MARGIN - 34)
    canvas.say(second + 28, 16, "tasks fixed, run to run")


def _row(canvas: Canvas, scale: Scale, number: int, each: ConfigurationReport, top: float) -> None:
    line, score = each.headline, each.valid
    told = _told(each)
    room = canvas.right - MARGIN - len(told) * LETTER * 0.6 - 8
    marks: list[Mark] = [
        Label(x=MARGIN, y=top + 16, text=fitted(each.label, room), bold=True),
        Label(x=canvas.right, y=top + 16, text=told, anchor=Anchor.END),
    ]
    for y, interval, why, dashed in (
        (top + 31, score.tasks_as_sample, line.no_interval, False),
        (top + 45, score.tasks_fixed, score.unavailable.get("tasks_fixed"), True),
    ):
        if interval is not None:
            marks += _whisker(scale, interval, number, y, dashed)
        elif why and line.value is not None:
            marks.append(_reason(scale, line.value, y + 4, why))
    if line.value is not None:
        marks.append(Sign(x=scale.at(line.value), y=top + 31, shape=shape_of(number), tone=tone_of(number), size=6))
    canvas.spot(f"{shown(each.label)}: {_description(each)}", *marks)


def _whisker(scale: Scale, interval: Interval, number: int, y: float, dashed: bool) -> list[Mark]:
    low, high, tone = scale.at(interval.low), scale.at(interval.high), tone_of(number)
    ends = [Line(points=((x, y - _CAP), (x, y + _CAP)), tone=tone, width=1.5) for x in (low, high)]
    return [Line(points=((low, y), (high, y)), tone=tone, width=1.5 if dashed else 3, dashed=dashed), *ends]


def _reason(scale: Scale, value: float, y: float, why: str) -> Label:
    """Beside the score, on the side with more room."""
    x, left = scale.at(value), scale.at(value) < (scale.start + scale.end) / 2
    room = (scale.end - x if left else x - scale.start) - 14
    text = fitted(f"no interval: {why}", room, SMALL)
    return Label(
        x=x + 12 if left else x - 12,
        y=y,
        text=text,
        tone=Tone.SOFT,
        anchor=Anchor.START if left else Anchor.END,
        small=True,
    )


def _told(each: ConfigurationReport) -> str:
    line = each.headline
    return "not scored" if line.value is None else estimate(line.value, line.low, line.high)


def _description(each: ConfigurationReport) -> str:
    line = each.headline
    if line.value is None:
        return f"not scored, coverage {percent(line.coverage)}"
    sampled, fixed = _intervals(each)
    return f"{_told(each)}; tasks as a sample {sampled}; tasks fixed {fixed}; coverage {percent(line.coverage)}"


def _intervals(each: ConfigurationReport) -> tuple[str, str]:
    score = each.valid
    named = (("tasks_as_sample", score.tasks_as_sample), ("tasks_fixed", score.tasks_fixed))
    sampled, fixed = (
        span(interval.low, interval.high) if interval else f"none: {score.unavailable.get(name, 'not scored')}"
        for name, interval in named
    )
    return sampled, fixed


def _cells(each: ConfigurationReport) -> tuple[str, ...]:
    line = each.headline
    return (
        shown(each.label),
        "not scored" if line.value is None else percent(line.value),
        *_intervals(each),
        percent(line.coverage),
        percent(line.leaderboard if line.value is not None else None),
        f"{line.valid} of {line.planned}",
    )


def _notes(each: ConfigurationReport) -> list[str]:
    line, notes = each.headline, []
    if line.value is not None and line.so_far:
        notes.append(f"{shown(each.label)}: so far, {line.ended} of {line.planned} trials ended.")
    if line.bounds is not None and line.value is not None:
        bounds = span(line.bounds.low, line.bounds.high)
        notes.append(f"{shown(each.label)}: {line.bounds.trials} trials without a valid result; bounds {bounds}.")
    return notes
