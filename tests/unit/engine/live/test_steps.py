"""An agent's steps are told as its trajectory grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.engine.live.steps import StepLog
from seatrial.engine.trials.redaction import Redaction
from tests.unit.engine.live.test_tail import SECRET, TRIAL


def step(number: int, **more: Any) -> dict[str, Any]:
    return {"step_id": number, "source": "agent", "message": f"thought {number}", **more}


class Trajectory:
    def __init__(self, folder: Path) -> None:
        (folder / "agent").mkdir()
        self.path = folder / "agent" / "trajectory.json"
        self.now = 1000.0
        self.log = StepLog(TRIAL, folder, Redaction([SECRET]), lambda: self.now)

    def write(self, *steps: dict[str, Any]) -> None:
        self.path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}))

    def told(self) -> list[Any]:
        return [event.data["step"] for event in self.log.read(last=True)]


@pytest.fixture
def trajectory(tmp_path: Path) -> Trajectory:
    return Trajectory(tmp_path)


def test_new_steps_are_told_once(trajectory: Trajectory) -> None:
    assert trajectory.told() == []
    trajectory.write(step(1), step(2))
    assert trajectory.told() == [1, 2]
    trajectory.write(step(1), step(2), step(3))
    assert (trajectory.told(), trajectory.told()) == ([3], [])


def test_a_step_is_told_in_short(trajectory: Trajectory) -> None:
    call = {"tool_call_id": "a", "function_name": "bash", "arguments": {"keystrokes": "ls\n" * 200, "duration": 1}}
    metrics = {"prompt_tokens": 12, "completion_tokens": 3, "cost_usd": 0.5}
    trajectory.write(step(1, tool_calls=[call], metrics=metrics) | {"message": f"{SECRET} " * 100})
    (event,) = trajectory.log.read()
    assert (event.kind.value, event.job_id, event.trial_id, event.attempt) == ("trial.step", 3, 7, 2)
    data = event.data
    assert (data["source"], data["input_tokens"], data["output_tokens"], data["cost_usd"]) == ("agent", 12, 3, 0.5)
    assert data["tools"] == [{"name": "bash", "input": ("ls\n" * 200)[:200]}]
    assert data["message"].startswith("[REDACTED] [REDACTED]")
    assert len(data["message"]) == 300


def test_a_trajectory_that_is_being_written_is_read_again(trajectory: Trajectory) -> None:
    trajectory.write(step(1), step(2))
    whole = trajectory.path.read_text()
    trajectory.path.write_text(whole[:-20])
    assert trajectory.told() == []
    trajectory.path.write_text(whole)
    assert trajectory.told() == [1, 2]


def test_the_next_part_of_a_task_begins_another_trajectory(trajectory: Trajectory) -> None:
    trajectory.write(step(1), step(2))
    assert trajectory.told() == [1, 2]
    trajectory.write(step(1))
    assert trajectory.told() == [1]


def test_what_was_copied_from_an_earlier_part_is_not_told_again(trajectory: Trajectory) -> None:
    trajectory.write(step(1, is_copied_context=True), step(2))
    assert trajectory.told() == [2]


@pytest.mark.parametrize("content", ['{"steps": 7}', '{"steps": [7, null]}', "[]", "nothing", '{"steps": [{}]}'])
def test_what_is_no_trajectory_does_no_harm(trajectory: Trajectory, content: str) -> None:
    trajectory.path.write_text(content)
    assert trajectory.told() in ([], [None])
    trajectory.write(step(1), step(2), step(3))
    assert trajectory.told()[-1] == 3


def test_it_is_not_read_at_every_look(trajectory: Trajectory) -> None:
    trajectory.write(step(1))
    assert len(trajectory.log.read()) == 1
    trajectory.write(step(1), step(2))
    trajectory.now += 0.9
    assert trajectory.log.read() == []
    trajectory.now += 0.2
    assert len(trajectory.log.read()) == 1
    trajectory.write(step(1), step(2), step(3))
    assert trajectory.log.read() == []
    assert len(trajectory.log.read(last=True)) == 1


def test_a_huge_one_and_a_link_are_left_alone(trajectory: Trajectory, tmp_path: Path) -> None:
    trajectory.write(step(1) | {"message": "x" * (5 << 20)})
    assert trajectory.told() == []
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"steps": [step(1)]}))
    trajectory.path.unlink()
    trajectory.path.symlink_to(other)
    assert trajectory.told() == []
