"""All pictures of a job, or one of them by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seatrial.charts.attempts import attempts
from seatrial.charts.forest import forest
from seatrial.charts.heat import heat_map
from seatrial.charts.scene import Chart, ChartName, Charts
from seatrial.charts.spread import DURATIONS, TOKENS, spread
from seatrial.charts.tradeoff import COST, TIME, tradeoff
from seatrial.charts.trend import trend
from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.report import JobReport

WIDTH, NARROWEST, WIDEST = 720, 320, 2000
"""Width of a picture in pixels: the default and the limits."""


@dataclass(frozen=True)
class Subject:
    """What the pictures are of."""

    job: Job
    report: JobReport
    trend: Trend
    agents: Mapping[str, AgentSpec]
    """The job's agents, by label of their configuration."""


_PICTURES: dict[ChartName, Callable[[Subject, float], Chart]] = {
    ChartName.FOREST: lambda of, width: forest(of.report, width),
    ChartName.COST: lambda of, width: tradeoff(of.report, width, COST),
    ChartName.TIME: lambda of, width: tradeoff(of.report, width, TIME),
    ChartName.TASKS: lambda of, width: heat_map(of.job, of.report, of.agents, width),
    ChartName.ATTEMPTS: lambda of, width: attempts(of.report, width),
    ChartName.DURATIONS: lambda of, width: spread(of.report, width, DURATIONS),
    ChartName.TOKENS: lambda of, width: spread(of.report, width, TOKENS),
    ChartName.TREND: lambda of, width: trend(of.trend, width),
}


def draw(name: ChartName, subject: Subject, width: float = WIDTH) -> Chart:
    return _PICTURES[name](subject, width)


def draw_all(subject: Subject, width: float = WIDTH) -> Charts:
    return Charts(items=tuple(draw(name, subject, width) for name in ChartName))
