"""What ``report --html``, ``report --svg`` and ``leaderboard`` leave behind and print."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from seatrial.charts.scene import ChartName
from seatrial.cli.view.leaderboard import print_leaderboard
from seatrial.cli.view.pictures import write_pictures
from seatrial.domain.reports.leaderboard import Board, JobScore, Leaderboard, entry, ranked
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.score import ScoreLine
from seatrial.errors import InvalidInput
from tests.unit.charts.subjects import subject

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_files_have_our_names_and_are_whole(tmp_path: Path) -> None:
    found = subject({"../../x": {"../y": "PF"}}, name="../../evil")
    html, folder = tmp_path / "report.html", tmp_path / "deep" / "pictures"
    written = write_pictures(found.job, found.report, Trend(), html, folder)
    assert written[0] == html and html.read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"job-7-{name}.svg" for name in ChartName)
    for path in folder.iterdir():
        ElementTree.parse(path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    found = subject({"x": {"a": "P"}})
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="Cannot write"):
        write_pictures(found.job, found.report, Trend(), tmp_path / "no" / "report.html", None)
    with pytest.raises(InvalidInput, match="Cannot write"):
        write_pictures(found.job, found.report, Trend(), None, tmp_path / "file")


def job_score(job: int, value: float | None, *why_not: str) -> JobScore:
    score = ScoreLine(label="x", value=value, low=0.1, high=0.9, coverage=1.0, valid=5, ended=5, planned=5)
    return JobScore(
        job=job,
        name="j",
        created_at=NOON,
        score=score,
        attempts=5,
        cost_per_trial=0.25,
        eligible=not why_not,
        why_not=why_not,
    )


def test_the_leaderboard_fits_a_terminal_and_cuts_no_number() -> None:
    long = "terminus-2 / openrouter/anthropic/a-model-with-a-long-name (temperature=0.7, max_turns=100)"
    entries = ranked(
        [
            entry("short", "short", None, [job_score(1, 0.5), job_score(2, 0.4)]),
            entry(long, "terminus-2", "m", [job_score(3, 0.75)]),
            entry("odd \x1b[31m", "odd", None, [job_score(4, None, "every planned trial: 2 were removed")]),
        ]
    )
    board = Board(label="d@1, 3 tasks", dataset="d@1", tasks=3, entries=entries)
    output = io.StringIO()
    console = Console(file=output, width=80)
    print_leaderboard(console, Leaderboard(rules="r", version="2", boards=(board,), jobs=4, older=7))
    text = output.getvalue()
    assert max(map(len, text.splitlines())) <= 80 and "\x1b" not in text
    assert [entry.rank for entry in entries] == [1, 2, None]
    for part in ("75.0 % (10.0 to 90.0)", "40.0 % (10.0 to 90.0)", "2 (+1)", "not scored", "$0.25", "7 older jobs"):
        assert part in text, text
    flat = " ".join(text.split())
    assert "job 2 is the newest of 2 eligible jobs, 2 in all; others: job 1 50.0 %" in flat
    assert "not eligible, breaks every planned trial: 2 were removed" in flat
