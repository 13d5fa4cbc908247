"""Everything is kept: what a person finds afterwards about a trial, a job, and two configurations beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import SAMPLES
from tests.e2e.conftest import SampleRun

pytestmark = pytest.mark.sandbox


def test_a_trial_has_its_lock_timings_and_tests(sample_run: SampleRun) -> None:
    shown = sample_run.cli.json("trial", "show", sample_run.trial("mend-a-script", "oracle"))
    result, lock = shown["result"], shown["result"]["lock"]
    task = sample_run.cli.json("task", "show", "mend-a-script")
    assert lock["task_digest"] == shown["trial"]["task"]["digest"] == task["digest"]
    assert lock["image_digest"].startswith("sha256:")
    assert (lock["sandbox"], lock["agent"]) == ("oci", "oracle")
    assert lock["limits"]
    assert any("seccomp" in entry for entry in lock["protections"])
    assert {test["name"].rpartition("::")[2]: test["status"] for test in result["tests"]} == {
        "test_the_given_numbers": "passed",
        "test_other_numbers": "passed",
        "test_empty_lines_do_not_count": "passed",
    }
    phases = {timing["phase"] for timing in result["timings"]}
    assert {"build", "start", "agent", "verify"} <= phases
    assert sum(timing["seconds"] for timing in result["timings"]) <= result["seconds"] + 0.1
    assert [attempt["number"] for attempt in shown["tries"]] == [1]


def test_a_trial_is_told_with_steps_and_named_rewards(sample_run: SampleRun) -> None:
    steps = sample_run.cli("trial", "show", sample_run.trial("report-in-two-steps", "oracle")).out
    assert "step count: reward 1" in steps
    assert "step report: reward 1" in steps
    stopped = sample_run.cli("trial", "show", sample_run.trial("report-in-two-steps", "nop")).out
    assert "step count: reward 0" in stopped
    assert "step report" not in stopped
    named = sample_run.cli("trial", "show", sample_run.trial("tidy-the-list", "oracle")).out
    assert "rewards  sorted 1, unique 1, trimmed 1" in named
    assert "passed   sorted" in named
    tests = sample_run.cli("trial", "show", sample_run.trial("mend-a-script", "nop")).out
    assert "failed   " in tests
    assert "test_the_given_numbers" in tests


def test_files_and_logs_are_kept_and_printed(sample_run: SampleRun, tmp_path: Path) -> None:
    trial = sample_run.trial("answer-file", "oracle")
    names = {file["path"]: file["size"] for file in sample_run.cli.json("trial", "files", trial)}
    assert {"verifier/reward.txt", "verifier/test-stdout.txt", "agent/oracle.txt", "trial.log"} <= set(names)
    assert sample_run.cli("trial", "files", trial, "verifier/reward.txt").out == "1\n"
    assert "verifier/reward.txt" in sample_run.cli("trial", "files", trial).out
    sample_run.cli("trial", "files", trial, "-o", tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")): path for path in (tmp_path / "copy").rglob("*")}
    assert {name: copied[name].stat().st_size for name in names} == names
    logs = sample_run.cli("trial", "logs", trial).out
    assert "==> verifier/test-stdout.txt <==\nPASSED the file holds 42" in logs
    for path in ("nothing.txt", "../../1/1/trial.log"):
        assert "Traceback" not in sample_run.cli("trial", "files", trial, path, status=2).err


def test_jobs_are_listed_and_shown(sample_run: SampleRun) -> None:
    summary = sample_run.summary
    [row] = [row for row in sample_run.cli.json("job", "list") if row["job"] == summary["job"]]
    assert (row["status"], row["trials"], row["passed"]) == ("completed", summary["trials"], summary["passed"])
    shown = sample_run.cli.json("job", "show", str(summary["job"]))
    assert shown["results"] == summary["results"]
    assert [agent["name"] for agent in shown["spec"]["agents"]] == ["oracle", "nop"]
    told = sample_run.cli("job", "show", str(summary["job"])).out
    assert f"{summary['trials']} of {summary['trials']} trials ended" in told
    assert "tidy-the-list" in told


def test_a_job_has_a_report_and_its_configurations_are_compared(sample_run: SampleRun) -> None:
    job = str(sample_run.summary["job"])
    report = sample_run.cli.json("report", job)
    assert {each["label"]: each["leaderboard"]["value"] for each in report["configurations"]} == {
        "oracle": 1.0,
        "nop": 0.0,
    }
    assert "coverage" in sample_run.cli("report", job, "--tests").out
    compared = sample_run.cli.json("compare", f"{job}:oracle", f"{job}:nop")
    assert "1.0" in json.dumps(compared)
    assert "oracle" in sample_run.cli("compare", job).out


def test_the_same_task_is_known_by_its_content(sample_run: SampleRun) -> None:
    tasks = sample_run.cli.json("task", "list")
    assert {task["name"] for task in tasks} == {path.name for path in SAMPLES.iterdir() if path.is_dir()}
    assert {task["format"] for task in tasks} == {"harbor", "terminal-bench-1"}
    told = sample_run.cli("task", "show", "answer-file").out
    assert "Multiply six by seven" in told
