"""``seatrial run --until-settled`` in real sandboxes: fewer trials, and one answer in every form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox

PLANNED = 10 * 2 * 5


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    for number in range(10):
        write_task(folder, f"task-{number}", tag=f"number-{number}")
    return folder


def test_a_clear_answer_takes_fewer_trials(cli: CommandLine, tasks: Path) -> None:
    two = ("-a", "oracle", "-a", "nop")
    done = cli.json("run", tasks, *two, "--until-settled", "--max", "5", "-n", "4")
    report = cli.json("report", str(done["job"]))
    found = report["settled"]
    assert (found["finding"], found["better"], found["difference"]) == ("a better", "oracle", 1.0)
    assert done["trials"] == found["trials_run"] == cli.count(job_id=str(done["job"])) <= PLANNED // 2
    assert (found["trials_planned"], found["not_needed"]) == (PLANNED, PLANNED - done["trials"])
    assert {each["label"]: each["coverage"] for each in report["configurations"]} == {"oracle": 1.0, "nop": 1.0}
    shown = " ".join(cli("report", str(done["job"])).out.split())
    assert found["sentence"] in shown
    assert f"{found['not_needed']} planned trials were not needed" in shown
    assert found["sentence"] in cli("report", str(done["job"]), "--markdown").out
    refused = cli("run", tasks, "-a", "oracle", "--until-settled", status=2)
    assert "two configurations" in refused.err
    assert "--until-settled" in cli("run", tasks, *two, "--margin", "3", status=2).err
