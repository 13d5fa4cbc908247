"""The samples, run once: what is printed, and what is found afterwards about trials, jobs and configurations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SAMPLES, CommandLine, Done

pytestmark = pytest.mark.sandbox

NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
KEYS = {"job", "trials", "added", "passed", "failed", "errors", "cancelled", "wall_seconds", "results"}
RESULT_KEYS = {"trial", "task", "agent", "model", "attempt", "outcome", "reward", "marks", "cause", "seconds"}


@dataclass(frozen=True)
class SampleRun:
    """``seatrial run samples/ -a oracle -a nop --json``, and the home it left behind."""

    cli: CommandLine
    done: Done

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.done.json())

    def result(self, task: str, agent: str) -> dict[str, Any]:
        [found] = [row for row in self.summary["results"] if (row["task"], row["agent"]) == (task, agent)]
        return dict(found)

    def trial(self, task: str, agent: str) -> str:
        return str(self.result(task, agent)["trial"])


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[SampleRun]:
    place = tmp_path_factory.mktemp("samples")
    with CommandLine(place / "home", image_cache, place) as cli:
        yield SampleRun(cli, cli("run", SAMPLES, "-a", "oracle", "-a", "nop", "--json"))


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
    assert [a_try["number"] for a_try in shown["tries"]] == [1]


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
    logs = sample_run.cli("trial", "logs", trial, "--raw").out
    assert "==> verifier/test-stdout.txt <==\nPASSED the file holds 42" in logs
    told = sample_run.cli("trial", "logs", trial).out
    # What each phase took stands behind the outcome. A quick try may have ended before its phases were written.
    assert re.search(r"  passed\n +.*\bagent \d.*, verify \d.*\n(.*\n)*  \| PASSED the file holds 42", told), told
    assert sample_run.cli("trial", "logs", trial, "--file", "verifier/reward.txt").out == "1\n"
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
