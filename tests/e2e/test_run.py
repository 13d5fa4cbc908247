"""``seatrial run`` on tasks that can be run: what goes in, what comes out."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.command_line import SAMPLES, CommandLine
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox


def test_folders_and_archives_are_taken_together(cli: CommandLine, tmp_path: Path) -> None:
    """A ZIP of one task, a tarball of a folder of tasks, a folder with a task in it, a job file with options."""
    cli("task", "pack", SAMPLES / "answer-file", "-o", tmp_path / "packed")
    write_task(tmp_path / "folder", "in-a-folder")
    write_task(tmp_path / "bundle", "first-in-tar")
    write_task(tmp_path / "bundle", "second-in-tar")
    with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "bundle", "bundle")
    job = tmp_path / "job.yaml"
    job.write_text("job_name: mixture\nn_attempts: 5\nn_concurrent_trials: 8\nagents: [oracle]\n")
    paths = (tmp_path / "packed" / "answer-file.zip", tmp_path / "folder", "-p", tmp_path / "bundle.tar.gz")
    summary = cli.json("run", *paths, "-c", job, "-k", "2", "-x", "second-*")
    tasks = {(row["task"], row["attempt"]) for row in summary["results"]}
    assert tasks == {(name, attempt) for name in ("answer-file", "in-a-folder", "first-in-tar") for attempt in (1, 2)}
    assert summary["passed"] == summary["trials"] == 6
    [listed] = cli.json("job", "list")
    assert (listed["name"], listed["status"], listed["passed"]) == ("mixture", "completed", 6)


def test_people_get_a_table(cli: CommandLine) -> None:
    done = cli("run", SAMPLES / "answer-file", "-a", "oracle", "-a", "nop", "-n", "2")
    assert "answer-file" in done.out
    assert "job 1: 2 trials: 1 passed, 1 failed" in done.out
    assert "2/2" in done.err
