"""A run that is killed, interrupted or cancelled: nothing is lost, nothing is done twice, nothing stays behind."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT, CommandLine, traces
from tests.task_files import write_task
from tests.waiting import until

pytestmark = pytest.mark.sandbox

PATIENT = ("-a", "tests.e2e.agents:Patient")


def gated(tmp_path: Path) -> tuple[str, ...]:
    """Options of an agent that waits until ``tmp_path/gate`` exists."""
    return (*PATIENT, "--ak", f"gate={tmp_path / 'gate'}", "--ak", f"diary={tmp_path / 'diary'}")


def tries(cli: CommandLine, trial: int) -> list[dict[str, Any]]:
    return list(cli.json("trial", "show", str(trial))["tries"])


def test_a_killed_run_is_resumed_and_every_trial_ends_once(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "wait")
    cli.environment.update(PYTHONPATH=str(ROOT))
    running = cli.start("run", task, *gated(tmp_path), "--ak", "free=3", "-k", "12", "-n", "4")
    until(lambda: cli.count(outcome="passed") == 3 and cli.count(phase="agent") == 4, "some done, some under way")
    running.signal(signal.SIGKILL)
    running.wait()
    before = cli.sandboxes()
    assert len(before) >= 4, "the kill came in the middle"
    assert (cli.count(state="ended"), cli.count(state="running")) == (3, 4)

    (tmp_path / "gate").touch()
    summary = cli.json("job", "resume", "1")
    assert (summary["trials"], summary["passed"]) == (12, 12)
    assert sorted(row["attempt"] for row in summary["results"]) == list(range(1, 13))
    again = [row["trial"] for row in summary["results"] if row["tries"] == 2]
    assert [row["tries"] for row in summary["results"]].count(1) == 8 and len(again) == 4
    for trial in again:
        lost, passed = tries(cli, trial)
        assert (lost["result"]["outcome"], lost["result"]["cause"]) == ("error", "worker_lost")
        assert passed["result"]["outcome"] == "passed"
    assert cli.sandboxes() == set()
    assert traces(cli.cache, before) == []
    assert list((cli.home / "work").glob("*/*")) == [], "nor the folders of the dead"

    resumed = cli.json("job", "resume", "1")
    assert resumed["results"] == summary["results"], "resuming what has ended changes nothing"


def test_an_interrupted_run_gives_its_trials_back(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "wait")
    running = cli.start("run", task, *gated(tmp_path), "-k", "4", "-n", "3", "--json", PYTHONPATH=str(ROOT))
    until(lambda: cli.count(phase="agent") == 3, "three under way")
    held = cli.sandboxes()
    assert len(held) == 3
    running.signal(signal.SIGINT)
    done = running.wait()
    assert done.status == 130
    assert done.json()["trials"] == 4
    assert "seatrial job resume 1" in done.err
    assert cli.count(state="queued") == 4
    assert traces(cli.cache, held) == []

    (tmp_path / "gate").touch()
    summary = cli.json("job", "resume", "1", PYTHONPATH=str(ROOT))
    assert (summary["passed"], summary["trials"]) == (4, 4)
    assert cli.sandboxes() == set()


def test_a_job_is_cancelled_from_another_process_and_retried(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "wait")
    cli.environment.update(SEATRIAL_HEARTBEAT_SEC="1", PYTHONPATH=str(ROOT))
    running = cli.start("run", task, *gated(tmp_path), "-k", "4", "-n", "3", "--json")
    until(lambda: cli.count(phase="agent") == 3, "three under way")
    held = cli.sandboxes()
    assert "4 trials cancelled" in cli("job", "cancel", "1").out
    done = running.wait()
    assert done.status == 3
    assert (done.json()["cancelled"], done.json()["trials"]) == (4, 4)
    assert traces(cli.cache, held) == []
    assert cli.json("job", "list")[0]["status"] == "cancelled"

    (tmp_path / "gate").touch()
    summary = cli.json("job", "retry", "1")
    assert (summary["passed"], summary["cancelled"]) == (4, 0)
    stopped, passed = tries(cli, int(summary["results"][0]["trial"]))
    assert (stopped["result"]["outcome"], passed["result"]["outcome"]) == ("cancelled", "passed")
    assert cli.json("job", "retry", "1")["passed"] == 4, "nothing left to retry"
