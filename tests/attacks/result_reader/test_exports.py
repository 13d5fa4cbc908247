"""Results leave as CSV for spreadsheets, as JSON for trainers, and as files: none of them does anything there."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.cli.commands.trial import _inside
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import TaskRef
from seatrial.engine.reports.grid import _harmless
from seatrial.errors import InvalidInput
from tests.api_in_process import Api, api_open
from tests.command_line import ROOT, CommandLine

FORMULAS = {
    "equals": "=1+1",
    "plus": "+1+1",
    "minus": "-1+1",
    "at": "@SUM(1)",
    "a command": "=cmd|'/c calc'!A0",
    "tab": "\t=1+1",
    "carriage return": "\r=1+1",
    "line feed": "\n=1+1",
    "behind a space": " =1+1",
    "behind a wide space": "\u3000=1+1",
    "behind nothing to see": "\u200b=1+1",
    "behind a mark of order": "\ufeff=1+1",
    "wide equals": "＝1+1",
    "wide at": "＠SUM(1)",
    "a pipe": "|calc",
    "percent": "%0A",
}
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, _env_file=None) as api:
        yield api


async def table(api: Api, name: str) -> list[list[str]]:
    there = api.service.installation
    spec = JobSpec(tasks=(TaskRef(name=name, digest=DIGEST),), agents=(AgentSpec(name="oracle"),))
    job = await there.store.jobs.create(spec, tuple(plan(spec)), there.clock())
    answer = await api.client.get(f"/api/v1/jobs/{job.id}/trials.csv")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    return list(csv.reader(io.StringIO(answer.text, newline="")))


@pytest.mark.parametrize("what", FORMULAS)
async def test_no_name_is_a_formula_in_a_spreadsheet(api: Api, what: str) -> None:
    _, row = await table(api, FORMULAS[what])
    assert row[1] == f"'{FORMULAS[what]}"


@pytest.mark.parametrize("name", ["honest", "a-b", "a=b", "1+1", "x@y", "é"])
async def test_honest_names_and_numbers_stay_what_they_are(api: Api, name: str) -> None:
    head, row = await table(api, name)
    assert row[1] == name and row[head.index("trial")].isdigit()
    assert _harmless(-1.5) == -1.5 and _harmless(0) == 0


@given(st.text(alphabet="=+-@|%＝＋－＠ \t\r\n\u200b\ufeffa1,;\"'"))
def test_no_text_becomes_a_formula(text: str) -> None:
    cell = str(_harmless(text))
    assert not re.match(r"[\t\r\n]|[\s\u200b\ufeff]*[=+\-@|%＝＋－＠]", cell)


def test_the_page_knows_the_same_formulas() -> None:
    """Both are written by hand, so what one learns the other has to."""
    page = (ROOT / "web" / "src" / "parts" / "csv.ts").read_text()
    ours = (ROOT / "src" / "seatrial" / "engine" / "reports" / "grid.py").read_text()
    signs = re.compile(r"\[=\+\\-@[^\]]*\]")
    found = signs.search(page), signs.search(ours)
    assert found[0] and found[1] and found[0][0] == found[1][0]


@pytest.mark.parametrize("form", ["jsonl", "atif"])
def test_a_hostile_trajectory_is_one_line_that_every_reader_takes(reader: CommandLine, form: str) -> None:
    target = Path(reader.directory, f"hostile-{form}.jsonl")
    done = reader("export", "1", "--format", form, "-o", target)
    assert done.err.startswith("1 exported")
    raw = target.read_bytes()
    [line] = raw.decode().splitlines()  # also NEL and the like would end a line here

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    told = json.dumps(json.loads(line, parse_constant=refuse), ensure_ascii=False)
    told.encode()
    assert "said" in told and "�" in told, "half a character is replaced"
    assert not re.search("[\x7f-\x9f\u202e\u2066]", line)


@pytest.mark.parametrize("form", ["jsonl", "atif"])
def test_a_trajectory_that_nobody_can_read_stops_no_export(reader: CommandLine, form: str) -> None:
    done = reader("export", "2", "--format", form)
    assert done.err.startswith("0 exported. Left out: 1 no trajectory.")


def test_a_folder_of_exports_holds_only_plain_names(reader: CommandLine) -> None:
    folder = Path(reader.directory, "exported")
    reader("export", "1", "--format", "atif", "-o", folder)
    assert [bool(re.fullmatch(r"[\w.-]+\.json", path.name)) for path in folder.rglob("*")] == [True]


def test_an_honest_trajectory_is_exported_as_it_is(reader: CommandLine) -> None:
    done = reader("export", "3")
    assert "Done, é 漢 🎉." in done.out and done.err.startswith("1 exported.")
    assert json.loads(done.out)["completion"][0]["content"] == "Done, é 漢 🎉."


OUTSIDE = ["../x", "/etc/x", "a/../../x", "", ".", "a/..", "x\0y"]


@pytest.mark.parametrize("path", OUTSIDE, ids=repr)
def test_files_are_copied_below_the_folder_that_was_named(tmp_path: Path, path: str) -> None:
    """A service lists them, and it may be anybody's."""
    with pytest.raises(InvalidInput):
        _inside(tmp_path, path)


def test_honest_files_are_copied(reader: CommandLine) -> None:
    folder = Path(reader.directory, "copied")
    reader("trial", "files", "3", "-o", folder)
    assert (folder / "agent" / "a.log").read_text() == "é\n"
    assert _inside(folder, "agent/..a/b..log") == folder / "agent/..a/b..log"
