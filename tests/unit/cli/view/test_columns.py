"""Lists fit the terminal: columns go before names are cut, nothing wraps, and a file gets everything."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from seatrial.cli.backend.backend import JobRow
from seatrial.cli.view.columns import Column, shorten, table_lines
from seatrial.cli.view.job_lists import JOBS, job_cells
from seatrial.domain.job import JobCounts, StateCounts
from seatrial.domain.reports.score import ScoreLine

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
CLAUDE, GPT = "terminus-2 / openrouter/anthropic/claude-sonnet-4.5", "terminus-2 / openrouter/openai/gpt-5.2"
LIST = (
    JobRow(
        id=128,
        name="nightly on the release branch",
        counts=JobCounts(passed=300, failed=100, error=45, added=StateCounts(passed=2)),
        created_at=NOW,
        scores=(
            ScoreLine(label=CLAUDE, value=0.71, low=0.671, high=0.749, coverage=1.0, leaderboard=0.71, planned=445),
            ScoreLine(label=GPT, value=0.624, low=0.5, high=0.7, coverage=0.8, leaderboard=0.5, planned=445),
        ),
    ),
    JobRow(id=7, name="job-7", counts=JobCounts(queued=3), created_at=NOW, scores=(ScoreLine(label="nop", planned=3),)),
)


def listed(width: int | None) -> list[str]:
    return list(table_lines(JOBS, [cells for job in LIST for cells in job_cells(job)], width))


def test_a_list_of_jobs_at_80_columns_has_score_and_model() -> None:
    assert listed(80) == [
        "job  status         trials                  score  coverage  agent / model",
        "128  completed  445/445 +2           71.0 % ± 3.9            terminus-…onnet-4.5",
        "                            62.4 % (50.0 to 70.0)    80.0 %  terminus-…i/gpt-5.2",
        "  7  pending           0/3             not scored            nop",
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_list_fits_the_terminal_and_uses_its_room(width: int) -> None:
    lines = listed(width)
    assert len(lines) == 4 and all(cell_len(line) <= width for line in lines)
    assert "71.0 % ± 3.9" in lines[1] and "62.4 % (50.0 to 70.0)" in lines[2]
    assert (CLAUDE in lines[1]) == (width in (120, 200))
    assert ("created" in lines[0]) == (width == 200)


def test_a_file_gets_every_column_in_full() -> None:
    heading, first, second, last = listed(None)
    assert heading.split()[:6] == ["job", "status", "trials", "score", "coverage", "leaderboard"]
    assert f"45  {CLAUDE}" in first and first.endswith("nightly on the release branch  2026-01-02 03:04")
    assert second.split()[-3:] == ["terminus-2", "/", "openrouter/openai/gpt-5.2"]
    assert last.split()[:5] == ["7", "pending", "0/3", "not", "scored"]


def test_columns_go_by_rank_and_empty_ones_first() -> None:
    columns = (Column("a"), Column("empty", rank=1), Column("second", rank=2), Column("third", rank=3))
    row = ("x" * 10, "", "y" * 10, "z" * 10)
    assert next(table_lines(columns, [row], 40)).split() == ["a", "second", "third"]
    assert next(table_lines(columns, [row], 25)).split() == ["a", "second"]
    assert [line.split() for line in table_lines(columns, [row], 5)] == [["a"], ["x" * 10]], "the last one stays"


def test_names_lose_their_middle_and_sentences_their_end() -> None:
    assert shorten("openrouter/openai/gpt-5.2", 13) == "openro…pt-5.2"
    assert shorten("The tests did not start.", 13, prose=True) == "The tests di…"
    assert cell_len(shorten("日本語のとても長い名前", 9)) <= 9
    assert shorten("short", 5) == "short"


def test_foreign_text_stays_on_its_line() -> None:
    [_, line] = table_lines((Column("name"),), [("a\nb\x1b[2J\t\u202ec",)], 80)
    assert line == "a b\\x1b[2J \\u202ec"
