"""Tasks and datasets by name: taken in, packed, registered, imported, run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import SAMPLES, CommandLine
from tests.task_files import write_task


def test_packing_gives_the_same_bytes_every_time(cli: CommandLine, tmp_path: Path) -> None:
    listed = cli("task", "pack", SAMPLES, "-o", tmp_path / "one").out.splitlines()
    cli("task", "pack", SAMPLES, "-o", tmp_path / "two")
    names = sorted(f"{path.name}.zip" for path in SAMPLES.iterdir() if path.is_dir())
    assert sorted(Path(line).name for line in listed) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    cli("task", "add", SAMPLES / "answer-file")
    cli("task", "add", tmp_path / "one" / "answer-file.zip")
    [task] = cli.json("task", "list")
    assert task["name"] == "answer-file", "the archive holds the task that the folder holds"


@pytest.mark.sandbox
def test_datasets_are_created_once_and_run_by_name(cli: CommandLine, tmp_path: Path) -> None:
    first, second = write_task(tmp_path, "first"), write_task(tmp_path, "second")
    assert "pair@1.0: 2 tasks" in cli("dataset", "create", "pair@1.0", first, second, "--description", "Two").out
    assert "pair@1.0" in cli("dataset", "create", "pair@1.0", first, second, "--description", "Two").out
    refused = cli("dataset", "create", "pair@1.0", first, status=1)
    assert "pair@1.0" in refused.err
    cli("dataset", "create", "pair@2.0", first)
    assert {found["id"]: found["tasks"] for found in cli.json("dataset", "list")} == {"pair@1.0": 2, "pair@2.0": 1}
    assert [ref["name"] for ref in cli.json("dataset", "show", "pair@1.0")["tasks"]] == ["first", "second"]
    assert [ref["name"] for ref in cli.json("dataset", "show", "pair")["tasks"]] == ["first"], "the newest"
    (first / "instruction.md").write_text("Changed since.\n")
    summary = cli.json("run", "-d", "pair@1.0")
    assert [(row["task"], row["outcome"]) for row in summary["results"]] == [("first", "passed"), ("second", "passed")]
    assert cli.json("job", "show", "1")["spec"]["dataset"] == "pair@1.0"


def test_datasets_are_imported_from_a_registry_file(cli: CommandLine, tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "listed")
    entry = {"name": "listed", "path": str(tmp_path / "tasks" / "listed")}
    registry = tmp_path / "registry.json"
    registry.write_text(json.dumps([{"name": "shelf", "version": "3.0", "description": "", "tasks": [entry]}]))
    assert "shelf@3.0: 1 task" in cli("dataset", "import", "shelf@3.0", "--registry", registry).out
    assert "Give --registry FILE" in cli("dataset", "import", "shelf@3.0", status=2).err
    unknown = cli("dataset", "import", "nothing", "--registry", registry, status=2)
    assert "nothing" in unknown.err
    plan = cli.json("run", "-d", "shelf@3.0", "--dry-run")
    assert [task["name"] for task in plan["tasks"]] == ["listed"]


def test_a_task_is_packed_into_the_file_that_was_named(cli: CommandLine, tmp_path: Path) -> None:
    sample, there = SAMPLES / "answer-file", tmp_path / "folder.zip"
    there.mkdir()
    assert cli("task", "pack", sample, "-o", tmp_path / "new" / "x.zip").out.split() == [
        str(tmp_path / "new" / "x.zip")
    ]
    assert (tmp_path / "new" / "x.zip").is_file()
    assert cli("task", "pack", sample, "-o", there).out.split() == [str(there / "answer-file.zip")]
    assert "one file" in cli("task", "pack", SAMPLES, "-o", tmp_path / "y.zip", status=2).err
    cli("task", "add", tmp_path / "new" / "x.zip")
