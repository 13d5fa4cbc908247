"""The golden set has the same numbers, to the digit, in the report of both backends, the API, the listing, the CSV, on
the terminal, in Markdown, in HTML, in pictures and on the leaderboard. ``tests/browser/test_pictures.py`` reads them on
the page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seatrial.charts.draw import Subject, draw_all
from seatrial.charts.report_page import report_page
from seatrial.charts.scene import Charts
from seatrial.charts.summary import summary_cells
from seatrial.charts.svg import svg_file
from seatrial.cli.commands.report import comparisons_json, report_json
from seatrial.cli.view.comparison_tables import print_circumstances, print_comparisons
from seatrial.cli.view.details import print_report
from seatrial.cli.view.leaderboard import print_leaderboard
from seatrial.cli.view.markdown import report_lines
from seatrial.domain.job import Job
from seatrial.domain.reports.figures import dollars
from seatrial.engine.reports.comparing import ComparisonWish
from seatrial.engine.reports.configurations import agents_by_label
from seatrial.engine.reports.grid import table_of
from seatrial.engine.reports.leaderboard import LeaderboardFilter
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.trend import trend_of
from tests.api_in_process import api_open
from tests.contracts.backend.place import Place, local_place, remote_place
from tests.golden.trials import record

NUMBERS: dict[str, Any] = json.loads((Path(__file__).parent / "numbers.json").read_text())


@pytest.fixture(params=["local", "remote"])
async def golden(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Place, Job]]:
    async with (local_place if request.param == "local" else remote_place)(tmp_path) as place:
        yield place, await record(place.here.store)


def taken(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in expected}


async def test_the_report_as_json(golden: tuple[Place, Job]) -> None:
    place, job = golden
    found = json.loads(json.dumps(report_json(*await place.backend.jobs.report(job.id, tests=False))))
    assert [each["label"] for each in found["configurations"]] == NUMBERS["order"]
    for each in found["configurations"]:
        expected = NUMBERS[each["label"]]
        for part in ("headline", "counts", "spending"):
            assert taken(each[part], expected[part]) == expected[part], (each["label"], part)
        assert each["coverage"] == expected["headline"]["coverage"]
        assert each["spread"]["seconds"]["p50"] == expected["seconds_p50"]
        added = each["added"] and {
            "passed": each["added"]["counts"]["passed"], "cost_usd": each["added"]["spending"]["cost_usd"]
        }  # fmt: skip
        assert added == expected["added"]
    whole = {**taken(found, {"added": 0, "removed": 0, "notices": 0})}
    whole |= taken(found["spending"], {"cost_usd": 0, "input_tokens": 0, "output_tokens": 0})
    assert whole == NUMBERS["job"]


async def test_the_list_of_jobs(golden: tuple[Place, Job]) -> None:
    place, job = golden
    [row] = await place.backend.jobs.page(5, None)
    for line in row.scores:
        expected = NUMBERS[line.label]["headline"]
        assert taken(line.model_dump(mode="json"), expected) == expected
    assert [line.label for line in row.scores] == NUMBERS["order"]
    totals = (await place.here.store.jobs.numbers([job.id]))[job.id].totals
    assert totals.model_dump(include={"cost_usd", "input_tokens", "output_tokens"}) == pytest.approx(
        taken(NUMBERS["job"], {"cost_usd": 0, "input_tokens": 0, "output_tokens": 0})
    )
    assert (row.counts.passed, row.counts.added.passed) == (8, 1)


def comparison_of(job: Job) -> ComparisonWish:
    return ComparisonWish(sides=(f"{job.id}:alpha", f"{job.id}:beta"))


async def test_the_comparison(golden: tuple[Place, Job]) -> None:
    place, job = golden
    jobs, wish = place.backend.jobs, comparison_of(job)
    said = comparisons_json(await jobs.compare(wish), await jobs.circumstances(wish))
    found = json.loads(json.dumps(said))
    expected = NUMBERS["comparison"]
    assert taken(found["comparisons"][0], expected["pair"]) == expected["pair"]
    assert found["comparisons"][0]["mcnemar"]["p"] == expected["mcnemar_p"]
    assert found["comparisons"][0]["significance"]["p"] == expected["p"]
    assert found["comparisons"][0]["interval"]["low"] == pytest.approx(expected["interval"][0], abs=1e-12)
    assert found["comparisons"][0]["interval"]["high"] == pytest.approx(expected["interval"][1], abs=1e-12)
    efforts = found["comparisons"][0]["efforts"]
    assert {name: efforts[name] and taken(efforts[name], want or {}) for name, want in expected["efforts"].items()} == (
        expected["efforts"]
    )
    cells = {row["task"]: row["cells"][0] for row in found["matrix"]}
    assert {task: taken(cells[task], cell) for task, cell in expected["matrix"].items()} == expected["matrix"]
    assert list(cells) == list(expected["matrix"]), "the largest losses come first"
    traits = {each["name"]: each["values"] for each in found["circumstances"]["traits"]}
    assert taken(traits, expected["traits"]) == expected["traits"]


async def test_the_comparison_on_the_terminal(golden: tuple[Place, Job]) -> None:
    place, job = golden
    wish = comparison_of(job)
    output = io.StringIO()
    console = Console(file=output, width=160)
    print_comparisons(console, (await place.backend.jobs.compare(wish)).items)
    print_circumstances(console, await place.backend.jobs.circumstances(wish))
    for part in NUMBERS["comparison"]["terminal"]:
        assert part in output.getvalue(), output.getvalue()


async def test_the_table_adds_up(golden: tuple[Place, Job]) -> None:
    place, job = golden
    text = "".join([piece async for piece in table_of(place.here.store.trials, job)])
    lines = list(csv.DictReader(io.StringIO(text)))
    for label in NUMBERS["order"]:
        planned = [line for line in lines if line["configuration"] == label and not line["reruns"]]
        expected = NUMBERS[label]
        assert len(planned) == expected["counts"]["planned"]
        assert sum(line["outcome"] == "passed" for line in planned) == expected["counts"]["passed"]
        tokens = sum(int(line["spent_input_tokens"] or 0) for line in planned)
        assert tokens == expected["spending"]["input_tokens"]
        costs = [float(line["spent_cost_usd"]) for line in planned if line["spent_cost_usd"]]
        assert (sum(costs) if costs else None) == pytest.approx(expected["spending"]["cost_usd"])
    assert [line["outcome"] for line in lines if line["reruns"]] == ["passed"]


async def test_the_terminal_and_markdown(golden: tuple[Place, Job]) -> None:
    place, job = golden
    _, report = await place.backend.jobs.report(job.id, tests=False)
    output = io.StringIO()
    print_report(Console(file=output, width=160), job, report)
    text = output.getvalue()
    for part in (
        "66.7 % (25.0 to 100.0)  coverage 83.3 %  leaderboard 54.2 %  bounds 50.0 to 66.7 %",
        "22.2 % (0.0 to 55.6)  coverage 75.0 %  leaderboard 16.7 %  bounds 16.7 to 41.7 %",
        "$1.10, $0.11 per trial, $0.18 per success",
        *NUMBERS["job"]["notices"],
        "alpha: added 1 trial: 1 passed; $0.10",
    ):
        assert part in text, text
    table = "\n".join(report_lines(job, report))
    assert (
        "| alpha | 66.7 % (25.0 to 100.0) | 83.3 % | 54.2 % | 50.0 to 66.7 % | 6 of 12 | $1.10 | $0.18 | 20.0 s |"
        in table
    )
    assert "| beta | 22.2 % (0.0 to 55.6) | 75.0 % | 16.7 % | 16.7 to 41.7 % | 2 of 12 | – | – | 15.0 s |" in table
    assert all(notice in table for notice in NUMBERS["job"]["notices"])


async def test_html_and_pictures(golden: tuple[Place, Job]) -> None:
    place, job = golden
    _, report = await place.backend.jobs.report(job.id, tests=False)
    subject = Subject(job, report, await place.backend.jobs.trend(job.id), agents_by_label(job))
    page = report_page(subject)
    markdown = "\n".join(report_lines(job, report))
    for each in report.configurations:
        cells = summary_cells(each)
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page
        assert f"| {' | '.join(cells)} |" in markdown
    assert all(f'<p class="note">{notice}</p>' in page for notice in NUMBERS["job"]["notices"])
    charts = {chart.name.value: chart for chart in draw_all(subject).items}
    assert charts["forest"].table.rows == tuple(map(tuple, NUMBERS["pictures"]["forest"]))
    assert charts["cost"].table.rows == tuple(map(tuple, NUMBERS["pictures"]["cost"]))
    assert charts["tasks"].table.rows == tuple(map(tuple, NUMBERS["pictures"]["tasks"]))
    for chart in charts.values():
        for row in chart.table.rows:
            assert "".join(f"<td>{cell}</td>" for cell in row) in page, chart.name


async def test_the_leaderboard(golden: tuple[Place, Job]) -> None:
    place, job = golden
    found = await place.backend.jobs.leaderboard(LeaderboardFilter())
    [board] = found.boards
    assert [entry.label for entry in board.entries] == NUMBERS["order"]
    for entry in board.entries:
        expected = NUMBERS[entry.label]
        assert taken(entry.shown.score.model_dump(mode="json"), expected["headline"]) == expected["headline"]
        assert dollars(entry.shown.cost_per_trial) == dollars(expected["spending"]["cost_per_trial"])
        assert entry.shown.priced == expected["spending"]["priced"]
        assert not entry.shown.eligible and entry.shown.job == job.id
    assert NUMBERS["job"]["notices"][0] in board.entries[0].shown.notices
    output = io.StringIO()
    print_leaderboard(Console(file=output, width=160), found)
    for part in ("66.7 % (25.0 to 100.0)", "22.2 % (0.0 to 55.6)", "83.3 %", "75.0 %", "$0.11"):
        assert part in output.getvalue(), output.getvalue()


async def test_the_api_draws_the_same(tmp_path: Path) -> None:
    async with api_open(tmp_path, _env_file=None) as api:
        store = api.service.installation.store
        job = await record(store)
        found = Charts.model_validate((await api.client.get(f"/api/v1/jobs/{job.id}/charts")).json())
        subject = Subject(
            job,
            await report_job(store.trials, job),
            await trend_of(store.jobs, api.service.listing, job),
            agents_by_label(job),
        )
        assert found == draw_all(subject)
        for chart in found.items:
            answer = await api.client.get(f"/api/v1/jobs/{job.id}/charts/{chart.name}.svg")
            assert answer.text == svg_file(chart)
        assert (await api.client.get(f"/api/v1/jobs/{job.id}/report.html")).text == report_page(subject)
