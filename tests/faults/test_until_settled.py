"""A worker that is killed while a job runs until it is settled: the answer comes later, and nothing is doubled."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from seatrial.settings import Settings
from tests.command_line import CommandLine
from tests.faults.checker import check_home
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC, until

pytestmark = pytest.mark.sandbox

PLANNED = 10 * 2 * 5


def test_a_killed_worker_delays_the_answer_and_doubles_nothing(cli: CommandLine, tmp_path: Path) -> None:
    for number in range(10):
        write_task(tmp_path / "tasks", f"task-{number}", tag=f"number-{number}")
    settings = {"LEASE_SEC": "6", "HEARTBEAT_SEC": "2", "REAP_SEC": "2"}
    cli.environment.update({f"SEATRIAL_{name}": value for name, value in settings.items()})
    job = cli.json("run", tmp_path / "tasks", "-a", "oracle", "-a", "nop", "--until-settled", "--queue-only")["job"]
    first = cli.fork("worker", "-n", "2")
    until(lambda: cli.count(job_id=str(job), state="ended") >= 4, "some trials ended", LIMIT_SEC)
    first.signal(signal.SIGKILL)
    others = [cli.fork("worker", "-n", "2") for _ in range(2)]
    until(lambda: cli.rows("SELECT ended_at FROM jobs WHERE id = ?", job)[0][0] is not None, "settled", LIMIT_SEC)
    found = cli.json("report", str(job))["settled"]
    assert (found["finding"], found["better"]) == ("a better", "oracle")
    assert found["trials_run"] == cli.count(job_id=str(job)) < PLANNED
    graded = cli.rows(
        """SELECT trial_id FROM attempts JOIN trials ON id = trial_id
        WHERE job_id = ? AND json_extract(result, '$.outcome') IN ('passed', 'failed')""",
        job,
    )
    assert len(graded) == len(set(graded)) == found["trials_run"]
    for worker in others:
        worker.signal(signal.SIGTERM)
        assert worker.wait(LIMIT_SEC).status == 0
    asyncio.run(check_home(Settings(home=cli.home, cache=cli.cache), job))
