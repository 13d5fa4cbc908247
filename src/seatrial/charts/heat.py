"""Tasks × configurations: the share of valid trials that passed, tasks that tell configurations apart first."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from seatrial.charts.canvas import MARGIN, Canvas, empty, legend, shape_of, tone_of
from seatrial.charts.scene import Anchor, Box, Chart, ChartName, ChartTable, Drawing, Label, Mark, Sign, Tone
from seatrial.charts.words import fitted, shown
from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.reports.figures import percent
from seatrial.domain.reports.pictures import TaskLine, by_disagreement
from seatrial.domain.reports.report import JobReport, TaskReport

_SUMMARY = (
    "Each cell is the share of a task's valid trials that passed. Tasks on which configurations differ most come "
    "first; among equals, those whose own attempts differ most. A cell without a colour has no valid trial."
)
_MOST_ROWS, _MOST_COLUMNS = 100, 24
_ROW, _TOP = 20.0, 26.0
_STRONGEST = 0.45
"""Text on the strongest colour must stay readable in both themes."""
_ROOM_FOR_TEXT = 30.0


def heat_map(job: Job, report: JobReport, agents: Mapping[str, AgentSpec], width: float) -> Chart:
    """``agents``: the job's agents, by label of their configuration."""
    lines = by_disagreement(report)
    labels = [each.label for each in report.configurations]
    scored = any(each.headline.value is not None for each in report.configurations)
    notes = []
    if len(lines) > _MOST_ROWS:
        notes.append(f"The picture has the {_MOST_ROWS} of {len(lines):,} tasks that differ most; the table has all.")
    if len(labels) > _MOST_COLUMNS:
        notes.append(f"The picture has the best {_MOST_COLUMNS} of {len(labels)} configurations; the table has all.")
    map_ = _Map(job, labels[:_MOST_COLUMNS], agents, Canvas(width))
    rows = tuple((shown(line.task), percent(line.disagreement), *map(_cell_text, line.cells)) for line in lines)
    return Chart(
        name=ChartName.TASKS,
        title="Tasks by disagreement",
        summary=_SUMMARY,
        notes=tuple(notes),
        drawing=map_.draw(lines[:_MOST_ROWS])
        if scored
        else empty(width, "Nothing is scored: no trial has a valid result."),
        table=ChartTable(columns=("task", "disagreement", *(shown(label) for label in labels)), rows=rows),
    )


class _Map:
    def __init__(self, job: Job, labels: list[str], agents: Mapping[str, AgentSpec], canvas: Canvas) -> None:
        self._job, self._labels, self._agents, self._canvas = job, labels, agents, canvas
        self._left = min(220.0, 0.36 * canvas.width)
        self._step = min(90.0, (canvas.right - self._left) / max(1, len(labels)))

    def draw(self, lines: tuple[TaskLine, ...]) -> Drawing:
        for number in range(len(self._labels)):
            x = self._left + (number + 0.5) * self._step
            self._canvas.add(Sign(x=x, y=14, shape=shape_of(number), tone=tone_of(number)))
        for number, line in enumerate(lines):
            self._row(line, _TOP + _ROW * number)
        bottom = _TOP + _ROW * len(lines)
        return self._canvas.drawing(legend(self._canvas, bottom + 22, list(enumerate(self._labels))))

    def _row(self, line: TaskLine, y: float) -> None:
        name = Label(x=MARGIN, y=y + 14, text=fitted(line.task, self._left - MARGIN - 8))
        told = shown(line.task)
        if line.disagreement is not None:
            told += f": configurations differ by {percent(line.disagreement)}"
        self._canvas.spot(told, name, to=f"/tasks/{quote(line.digest, safe=':')}")
        for number, (label, cell) in enumerate(zip(self._labels, line.cells, strict=False)):
            if cell is not None:
                self._cell(label, cell, self._left + number * self._step, y)

    def _cell(self, label: str, cell: TaskReport, x: float, y: float) -> None:
        size = self._step - 2
        strength = 0.0 if cell.valid is None else 0.04 + (_STRONGEST - 0.04) * cell.valid
        marks: list[Mark] = [Box(x=x, y=y, width=size, height=_ROW - 2, tone=Tone.HEAT, strength=round(strength, 3))]
        if size >= _ROOM_FOR_TEXT:
            counted = f"{cell.counts.passed}/{cell.counts.valid}" if cell.counts.valid else "–"
            marks.append(Label(x=x + size / 2, y=y + 13, text=counted, anchor=Anchor.MIDDLE, small=True))
        told = f"{shown(cell.task)}, {shown(label)}: {_cell_text(cell)}"
        self._canvas.spot(told, *marks, to=self._trials(label, cell))

    def _trials(self, label: str, cell: TaskReport) -> str:
        """The job's page with the trials of this cell."""
        agent = self._agents.get(label)
        wanted = {"task": cell.task} | ({"agent": agent.name} if agent else {})
        if agent and agent.model:
            wanted["model"] = agent.model
        return f"/jobs/{self._job.id}?{urlencode(wanted)}"


def _cell_text(cell: TaskReport | None) -> str:
    if cell is None:
        return "not run"
    if cell.valid is None:
        return "no valid trial"
    return f"{percent(cell.valid)} ({cell.counts.passed}/{cell.counts.valid})"
