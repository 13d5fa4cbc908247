"""``seatrial run`` on tasks that can be run: what goes in, what comes out."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.command_line import SAMPLES, CommandLine
from tests.e2e.conftest import SampleRun
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox

NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
KEYS = {"job", "trials", "passed", "failed", "errors", "cancelled", "wall_seconds", "results"}
RESULT_KEYS = {"trial", "task", "agent", "model", "attempt", "outcome", "reward", "marks", "cause", "seconds"}


def test_samples_of_both_formats_pass_with_the_oracle_and_fail_with_nop(sample_run: SampleRun) -> None:
    for name in NAMES:
        solved, untouched = sample_run.result(name, "oracle"), sample_run.result(name, "nop")
        assert (solved["outcome"], solved["reward"], solved["cause"]) == ("passed", 1.0, None), solved
        assert (untouched["outcome"], untouched["reward"], untouched["cause"]) == ("failed", 0.0, None), untouched


def test_json_is_one_object_with_the_documented_keys(sample_run: SampleRun) -> None:
    summary = sample_run.summary
    assert set(summary) == KEYS
    assert (summary["trials"], summary["passed"], summary["failed"]) == (2 * len(NAMES), len(NAMES), len(NAMES))
    assert (summary["errors"], summary["cancelled"]) == (0, 0)
    assert summary["wall_seconds"] > 0
    assert all(set(row) >= RESULT_KEYS for row in summary["results"])
    assert len({row["trial"] for row in summary["results"]}) == summary["trials"]
    assert all(0 < row["seconds"] <= summary["wall_seconds"] for row in summary["results"])


def test_rewards_by_name_and_tests_by_name_are_counted(sample_run: SampleRun) -> None:
    assert sample_run.result("tidy-the-list", "oracle")["rewards"] == {"sorted": 1.0, "unique": 1.0, "trimmed": 1.0}
    assert sample_run.result("tidy-the-list", "nop")["rewards"] == {"sorted": 0.0, "unique": 0.0, "trimmed": 0.0}
    assert sample_run.result("mend-a-script", "oracle")["tests"] == {"passed": 3, "total": 3}
    assert sample_run.result("mend-a-script", "nop")["tests"] == {"passed": 0, "total": 3}


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
