"""Pictures: each value where it belongs, said in words and in a table; what cannot be drawn says why."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path

import pytest

from seatrial.charts.draw import NARROWEST, WIDEST, WIDTH, Subject, draw, draw_all
from seatrial.charts.report_page import report_page
from seatrial.charts.scene import Box, Chart, ChartName, Label, Line, Sign, Spot, Tone
from seatrial.charts.styles import HTML_STYLES, SVG_STYLES
from seatrial.charts.svg import NAMESPACE, svg_file
from seatrial.domain.reports.pictures import Trend, by_disagreement, dollars_per_trial, rivals
from tests.unit.charts.subjects import point, subject

TWO = {
    "alpha": {"a": "PPP", "b": "PFP", "c": "FFF"},
    "beta": {"a": "PFF", "b": "FFF", "c": "FPP"},
}
PAGE_STYLES = Path(__file__).parents[3] / "web" / "src" / "parts" / "charts" / "charts.css"


def spots(chart: Chart, beginning: str) -> list[Spot]:
    return [spot for spot in chart.drawing.spots if spot.text.startswith(beginning)]


def only_sign(spot: Spot) -> Sign:
    [sign] = [mark for mark in spot.marks if isinstance(mark, Sign)]
    return sign


def texts(chart: Chart) -> str:
    marks = [*chart.drawing.marks, *(mark for spot in chart.drawing.spots for mark in spot.marks)]
    return "\n".join(mark.text for mark in marks if isinstance(mark, Label))


def test_the_forest_has_both_intervals_where_they_belong() -> None:
    found = subject(TWO)
    chart = draw(ChartName.FOREST, found, 520)
    first, last = 20.0, 520 - 12 - 14  # the ends of the axis
    for each in found.report.configurations:
        [spot] = spots(chart, f"{each.label}:")
        score = each.valid
        assert score.value is not None and score.tasks_as_sample and score.tasks_fixed
        assert only_sign(spot).x == pytest.approx(first + score.value * (last - first), abs=0.01)
        across = [mark for mark in spot.marks if isinstance(mark, Line) and mark.points[0][1] == mark.points[1][1]]
        drawn = {mark.dashed: (mark.points[0][0], mark.points[1][0]) for mark in across}
        for dashed, interval in ((False, score.tasks_as_sample), (True, score.tasks_fixed)):
            wanted = [first + end * (last - first) for end in (interval.low, interval.high)]
            assert drawn[dashed] == pytest.approx(wanted, abs=0.01)
    assert [row[0] for row in chart.table.rows] == ["alpha", "beta"], "the best first"


def test_a_degenerate_interval_says_why_instead() -> None:
    chart = draw(ChartName.FOREST, subject({"x": {"a": "PP", "b": "PP"}}))
    assert "no interval: every task scored the same" in texts(chart)
    assert "no interval: no task both passed and failed" in texts(chart)
    assert chart.table.rows[0][2:4] == ("none: every task scored the same", "none: no task both passed and failed")
    one = draw(ChartName.FOREST, subject({"x": {"a": "P"}}))
    assert "no interval: one task says nothing about others" in texts(one)


@pytest.mark.parametrize("name", [each for each in ChartName if each is not ChartName.TREND])
def test_nothing_scored_is_said_and_not_drawn(name: ChartName) -> None:
    chart = draw(name, subject({"x": {"a": "S", "b": "C"}}))
    assert chart.drawing.spots == ()
    assert re.search("Nothing is scored|Nothing to show", texts(chart)), texts(chart)
    assert "0.0 %" not in " ".join(chart.table.rows[0][:2])


def test_the_front_is_what_nobody_beats() -> None:
    stories = {
        "best": {"a": "PPPP"},
        "cheap": {"a": "PFFF"},
        "beaten": {"a": "PPFF"},
        "middle": {"a": "PPFF"},
        "priceless": {"a": "PPPF"},
    }
    cost = {"best": 2.0, "cheap": 0.1, "beaten": 0.9, "middle": 0.5}
    found = subject(stories, cost=cost)
    members = rivals(found.report, dollars_per_trial)
    front = {rival.configuration.label for rival in members if rival.on_front}
    assert front == {"best", "cheap", "middle"}
    chart = draw(ChartName.COST, found)
    told = {row[0]: row[3] for row in chart.table.rows}
    assert told == {"best": "yes", "cheap": "yes", "middle": "yes", "beaten": "no", "priceless": "–"}
    assert "priceless is not shown: cost not reported." in chart.notes
    places = {rival.configuration.label: only_sign(spots(chart, rival.configuration.label)[0]) for rival in members}
    assert places["cheap"].x < places["middle"].x < places["beaten"].x < places["best"].x
    assert places["best"].y < places["middle"].y == places["beaten"].y < places["cheap"].y


def test_a_front_member_is_never_dominated() -> None:
    grid = list(product((0, 1, 2), (0.1, 0.2, 0.3)))
    stories = {f"c{number}": {"a": "P" * passed + "F" * (2 - passed)} for number, (passed, _) in enumerate(grid)}
    found = subject(stories, cost={f"c{number}": cost for number, (_, cost) in enumerate(grid)})
    members = rivals(found.report, dollars_per_trial)
    for one in members:
        beaten = any(
            other.score >= one.score
            and other.price <= one.price
            and (other.score, other.price) != (one.score, one.price)
            for other in members
        )
        assert one.on_front is not beaten


def test_tasks_that_tell_configurations_apart_come_first() -> None:
    stories = {
        "x": {"same": "PP", "apart": "PP", "half": "PF", "unsteady": "PF", "none": "S."},
        "y": {"same": "PP", "apart": "FF", "half": "FF", "unsteady": "PF", "none": "SS"},
    }
    lines = by_disagreement(subject(stories).report)
    assert [line.task for line in lines] == ["apart", "half", "unsteady", "none", "same"]
    assert [line.disagreement for line in lines] == [1.0, 0.5, 0.0, None, 0.0]
    chart = draw(ChartName.TASKS, subject(stories))
    assert chart.table.rows[0] == ("apart", "100.0 %", "100.0 % (2/2)", "0.0 % (0/2)")
    [cell] = spots(chart, "apart, x:")
    assert cell.to == "/jobs/7?task=apart&agent=x"
    [box] = [mark for mark in cell.marks if isinstance(mark, Box)]
    assert box.strength == 0.45
    [missing] = spots(chart, "none, y:")
    assert "no valid trial" in missing.text


def test_many_tasks_are_cut_and_the_table_has_all() -> None:
    stories = {"x": {f"task-{number:03d}": "P" for number in range(130)}}
    chart = draw(ChartName.TASKS, subject(stories))
    assert len(chart.table.rows) == 130
    assert chart.notes == ("The picture has the 100 of 130 tasks that differ most; the table has all.",)
    assert len(spots(chart, "task-")) == 200


def test_curves_begin_at_the_score_and_part() -> None:
    chart = draw(ChartName.ATTEMPTS, subject({"x": {"a": "PPF", "b": "FFF"}}))
    at = {spot.text: only_sign(spot) for spot in chart.drawing.spots}
    assert at["x: pass@1 33.3 %"].y == at["x: pass^1 33.3 %"].y
    assert at["x: pass@3 50.0 %"].y < at["x: pass@1 33.3 %"].y < at["x: pass^3 0.0 %"].y
    assert ("x", "3", "50.0 %", "0.0 %") in chart.table.rows
    one = draw(ChartName.ATTEMPTS, subject({"x": {"a": "P"}}))
    assert "need at least two valid trials" in texts(one)
    short = draw(ChartName.ATTEMPTS, subject({"x": {"a": "PFP", "b": "PFS"}}))
    assert short.notes == ("x: k = 3 needs 3 scored trials of every task; 1 of 2 have fewer.",)


def test_distributions_are_the_quantiles_of_the_report() -> None:
    found = subject({"x": {"a": "PFPF"}}, seconds=(30.0, 10.0, 20.0, 40.0))
    [row] = draw(ChartName.DURATIONS, found).table.rows
    assert row == ("x", "4", "13.0 s", "17.5 s", "25.0 s", "32.5 s", "37.0 s", "39.7 s", "40.0 s")
    assert draw(ChartName.TOKENS, found).table.rows[0][1:5] == ("4", "130", "175", "250")


def test_a_trend_joins_jobs_and_leads_to_them() -> None:
    points = (point(1, "x", 0.5, 0.4, 0.6), point(2, "x", None), point(3, "x", 0.75), point(3, "y", 0.25))
    chart = draw(ChartName.TREND, subject(TWO, trend=Trend(dataset="d@1", points=points, other_tasks=2)))
    assert [spot.to for spot in chart.drawing.spots] == ["/jobs/1", "/jobs/3", "/jobs/3"]
    assert chart.notes == (
        "2 jobs of this dataset ran other tasks of it; not shown.",
        "1 point without a score; in the table.",
    )
    assert chart.table.rows[1][3] == "not scored"
    assert "A trend" in texts(draw(ChartName.TREND, subject(TWO, trend=Trend(missing="A trend needs a dataset."))))


@pytest.mark.parametrize("width", [NARROWEST, WIDTH, WIDEST])
@pytest.mark.parametrize("stories", [TWO, {f"configuration-{number}": {"a": "PF", "b": "FF"} for number in range(30)}])
def test_every_picture_is_sound_svg_within_its_frame(stories: dict[str, dict[str, str]], width: int) -> None:
    points = tuple(point(job, "x", job / 40) for job in range(1, 40))
    found = subject(stories, cost=dict.fromkeys(stories, 0.5), trend=Trend(dataset="d", points=points))
    for chart in draw_all(found, width).items:
        root = ElementTree.fromstring(svg_file(chart))
        assert root.get("role") == "img"
        named = [root.find(f"{{{NAMESPACE}}}{kind}") for kind in ("title", "desc")]
        assert root.get("aria-labelledby") == " ".join(str(each.get("id")) for each in named if each is not None)
        assert named[0] is not None and named[0].text == chart.title
        for x, y in positions(chart):
            assert -1 <= x <= width + 1 and -1 <= y <= chart.drawing.height + 1, chart.name
        assert all(spot.area.width > 4 and spot.area.height > 4 for spot in chart.drawing.spots)
        assert chart.table.rows and {len(row) for row in chart.table.rows} == {len(chart.table.columns)}


def positions(chart: Chart) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for mark in (*chart.drawing.marks, *(mark for spot in chart.drawing.spots for mark in spot.marks)):
        match mark:
            case Line():
                found += mark.points
            case Box():
                found += [(mark.x, mark.y), (mark.x + mark.width, mark.y + mark.height)]
            case _:
                found.append((mark.x, mark.y))
    return found


def test_every_tone_has_a_colour_in_each_sheet_and_theme() -> None:
    page = PAGE_STYLES.read_text()
    for tone in Tone:
        for sheet in (SVG_STYLES, HTML_STYLES):
            assert f".t-{tone}{{" in sheet and len(re.findall(rf"--{tone}:#", sheet)) == 2
        assert f".t-{tone} " in page, tone
    for name in ("line", "box", "sign", "label", "small", "bold", "dashed", "hit", "ring", "cross"):
        assert f".{name}" in SVG_STYLES and f".{name}" in page, name


def test_the_report_is_one_file_that_asks_for_nothing() -> None:
    found = subject(TWO, cost={"alpha": 0.5})
    page = report_page(found)
    assert re.findall(r"<(script|link|img|iframe|object|embed|base|form)\b", page) == []
    assert re.findall(r"\b(?:src|href|action|url)\s*[=(]", page) == []
    assert set(re.findall(r"https?://[^\"'<\s]+", page)) == {NAMESPACE}
    assert "prefers-color-scheme:dark" in page and "Content-Security-Policy" in page
    for chart in draw_all(found).items:
        assert page.count(f"<summary>Table: {chart.title}</summary>") == 1


def test_a_job_without_trials_has_a_report() -> None:
    nothing = subject({})
    assert "Nothing is scored" in report_page(Subject(nothing.job, nothing.report, nothing.trend, {}))
