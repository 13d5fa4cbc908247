"""Scores over jobs of one dataset."""

from __future__ import annotations

from seatrial.charts.canvas import Canvas, axis_beside, empty, legend, shape_of, tone_of, whole_percent
from seatrial.charts.scale import Scale, shares
from seatrial.charts.scene import Anchor, Chart, ChartName, ChartTable, Drawing, Label, Line, Mark, Sign, Tone
from seatrial.charts.words import shown
from seatrial.domain.reports.figures import estimate, percent, plural
from seatrial.domain.reports.pictures import Trend, TrendPoint

_SUMMARY = (
    "The score of each configuration in the jobs that ran the same tasks of this dataset, oldest first, with its 95 % "
    "interval over tasks. Jobs stand at equal distances; a line joins jobs of the same configuration."
)
_COLUMNS = ("job", "created", "configuration", "score", "coverage", "errors as 0")
_LEFT, _TOP = 52.0, 14.0


def trend(found: Trend, width: float) -> Chart:
    scored = [point for point in found.points if point.score.value is not None]
    if found.missing:
        drawing = empty(width, found.missing)
    elif not scored:
        drawing = empty(width, "Nothing is scored: no trial has a valid result.")
    else:
        drawing = _draw(scored, width)
    notes = []
    if found.other_tasks:
        notes.append(f"{plural(found.other_tasks, 'job')} of this dataset ran other tasks of it; not shown.")
    missing = len(found.points) - len(scored)
    if missing:
        notes.append(f"{plural(missing, 'point')} without a score; in the table.")
    return Chart(
        name=ChartName.TREND,
        title=f"Trend over jobs of {shown(found.dataset, 60)}" if found.dataset else "Trend over jobs",
        summary=_SUMMARY,
        notes=tuple(notes),
        drawing=drawing,
        table=ChartTable(columns=_COLUMNS, rows=tuple(map(_cells, found.points))),
    )


def _draw(points: list[TrendPoint], width: float) -> Drawing:
    canvas = Canvas(width)
    bottom = _TOP + min(280.0, 0.55 * width)
    jobs = list(dict.fromkeys(point.job for point in points))
    across = Scale(0, max(1, len(jobs) - 1), _LEFT + 16, canvas.right - 16)
    up = shares(bottom, _TOP)
    axis_beside(canvas, up, _LEFT, canvas.right, whole_percent)
    every = max(1, -(-len(jobs) * 44 // int(across.end - across.start)))
    for place, job in enumerate(jobs):
        if place % every == 0:
            x = across.at(place)
            canvas.add(Label(x=x, y=bottom + 15, text=f"#{job}", tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True))
    middle = (across.start + across.end) / 2
    canvas.add(Label(x=middle, y=bottom + 31, text="job", tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True))
    series = {label: number for number, label in enumerate(dict.fromkeys(point.score.label for point in points))}
    for label, number in series.items():
        own = [point for point in points if point.score.label == label]
        line = tuple((across.at(jobs.index(point.job)), up.at(point.score.value or 0.0)) for point in own)
        if len(line) > 1:
            canvas.add(Line(points=line, tone=tone_of(number), width=1.5))
        for point in own:
            _point(canvas, across.at(jobs.index(point.job)), up, number, point)
    return canvas.drawing(legend(canvas, bottom + 52, [(number, label) for label, number in series.items()]))


def _point(canvas: Canvas, x: float, up: Scale, number: int, point: TrendPoint) -> None:
    score, tone = point.score, tone_of(number)
    marks: list[Mark] = []
    if score.low is not None and score.high is not None:
        marks.append(Line(points=((x, up.at(score.low)), (x, up.at(score.high))), tone=tone))
    marks.append(Sign(x=x, y=up.at(score.value or 0.0), shape=shape_of(number), tone=tone, size=5))
    told = f"job {point.job}, {shown(score.label)}: {_told(point)}, coverage {percent(score.coverage)}"
    canvas.spot(told, *marks, to=f"/jobs/{point.job}")


def _told(point: TrendPoint) -> str:
    score = point.score
    return "not scored" if score.value is None else estimate(score.value, score.low, score.high)


def _cells(point: TrendPoint) -> tuple[str, ...]:
    score = point.score
    return (
        f"{point.job} ({shown(point.name, 80)})",
        f"{point.created_at:%Y-%m-%d %H:%M} UTC",
        shown(score.label),
        _told(point),
        percent(score.coverage),
        percent(score.leaderboard if score.value is not None else None),
    )
