"""``seatrial export`` of a job with a solved trial, a failed one, an error and one whose agent said nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harbor.models.trajectories.trajectory import Trajectory

from tests.command_line import CommandLine
from tests.verifiers.tasks import ANSWERED, SmallTask, write_faulty

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> CommandLine:
    place = tmp_path_factory.mktemp("export")
    tasks = write_faulty(place / "tasks")
    SmallTask("bad", ("echo 41 > /app/answer.txt",), ANSWERED, 0.0).write(tasks)
    cli = CommandLine(place / "home", image_cache, place)
    chosen = ["-i", "good", "-i", "bad", "-i", "silent-grader", "--max-tries", "1"]
    cli("run", tasks, *chosen, "-a", "terminus-2", "-m", "scripted/shell", status=3)
    cli("run", tasks, "-i", "good", "-a", "oracle")
    return cli


def test_jsonl_has_one_object_for_each_graded_trial(finished: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "out" / "rows.jsonl"
    done = finished("export", "1", "--format", "jsonl", "--output", target)
    rows = {row["task"]: row for row in map(json.loads, target.read_text().splitlines())}
    assert {name: row["reward"] for name, row in rows.items()} == {"good": 1.0, "bad": 0.0}
    assert "2 exported. Left out: 1 error." in done.err
    good = rows["good"]
    assert [message["role"] for message in good["prompt"]] == ["user"]
    assert good["completion"][0]["role"] == "assistant"
    assert "echo 42 > /app/answer.txt" in json.dumps(good["completion"])
    assert good["info"]["outcome"] == "passed"


def test_lines_go_to_standard_output_and_errors_come_when_asked_for(finished: CommandLine) -> None:
    done = finished("export", "1", "--errors")
    rewards = {row["task"]: row["reward"] for row in map(json.loads, done.out.splitlines())}
    assert rewards == {"good": 1.0, "bad": 0.0, "silent-grader": None}


def test_atif_stays_valid_in_a_folder_and_in_lines(finished: CommandLine, tmp_path: Path) -> None:
    finished("export", "1", "--format", "atif", "--output", tmp_path / "trajectories")
    files = [Trajectory.model_validate_json(file.read_text()) for file in (tmp_path / "trajectories").glob("*.json")]
    lines = finished("export", "1", "--format", "atif").out.splitlines()
    assert len(files) == len(lines) == 2
    assert sorted((found.extra or {})["reward"] for found in files) == [0.0, 1.0]
    assert all(Trajectory.model_validate_json(line).steps for line in lines)


def test_an_agent_that_keeps_no_trajectory_is_said_to_have_none(finished: CommandLine) -> None:
    done = finished("export", "2")
    assert done.out == ""
    assert "0 exported. Left out: 1 no trajectory." in done.err


def test_a_job_that_is_not_there_is_refused(finished: CommandLine) -> None:
    assert "seatrial:" in finished("export", "99", status=2).err
