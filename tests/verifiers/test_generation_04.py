"""verifiers 0.4: the taskset by its id, with the environment and the tool that come with it."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import traces
from tests.engine import Engine
from tests.verifiers.conftest import NewEvaluation
from tests.verifiers.generations import Evaluation, sandboxes_of_rollouts
from tests.verifiers.tasks import TEN, SmallTask, give_uv, write_faulty, write_ten
from tests.waiting import LIMIT_SEC, until

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]


def command(evaluation: Evaluation, tasks: Path, *more: str | Path) -> list[str | Path]:
    client = ["--client.base-url", evaluation.models, "--client.api-key-var", "OPENROUTER_API_KEY"]
    place = ["--env.taskset.tasks", tasks, "--output-dir", "results", "--no-push", "--no-rich"]
    return ["terminalbench", "-m", "shell", *client, *place, *more]


def traces_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The one trace of every episode."""
    return [episode["traces"][0] for episode in evaluation.lines("traces.jsonl")]


@pytest.fixture(scope="module")
def every(evaluation: NewEvaluation) -> list[dict[str, Any]]:
    """One evaluation of ten good and three more tasks: to start one takes longer than to run it."""
    done = evaluation("v04")
    tasks = write_faulty(write_ten(done.folder / "tasks"))
    done.run(command(done, tasks, "-n", "13", "-r", "2", "-c", "10"))
    return traces_of(done)


@pytest.fixture(scope="module")
def ten(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {task.name for task in TEN}
    return [trace for trace in every if trace["task"]["data"]["name"] in names]


def test_ten_examples_twice_get_the_scores_that_their_tests_give(ten: list[dict[str, Any]]) -> None:
    scores = defaultdict(list)
    for trace in ten:
        scores[trace["task"]["data"]["name"]].append(trace["rewards"]["solved"]["score"])
    assert scores == {task.name: [task.score, task.score] for task in TEN}
    assert all(trace["ok"] for trace in ten)


def test_the_trace_carries_what_the_agent_saw_and_what_each_test_said(ten: list[dict[str, Any]]) -> None:
    trace = next(trace for trace in ten if trace["task"]["data"]["name"] == "d-wrong-answer-old")
    notes = trace["info"]["terminalbench"]
    assert "echo 41 > /app/answer.txt" in notes["agent_output"]
    assert [test["status"] for test in notes["tests"]] == ["failed", "passed"]
    assert trace["metrics"]["tests_passed"] == 1.0


def test_the_model_had_one_tool(ten: list[dict[str, Any]]) -> None:
    [tool] = ten[0]["tools"]
    assert tool["name"] == "execute_commands"
    assert set(tool["parameters"]["properties"]) == {"commands", "reasoning"}


def test_limits_are_the_tasks_own(ten: list[dict[str, Any]]) -> None:
    assert {trace["task"]["data"]["timeout"]["agent"] for trace in ten} == {240.0}


def test_a_fault_of_image_or_grader_is_an_error_and_never_a_score(every: list[dict[str, Any]]) -> None:
    found = defaultdict(list)
    for trace in every:
        found[trace["task"]["data"]["name"]].append(trace)
    assert [trace["rewards"]["solved"]["score"] for trace in found["good"]] == [1.0, 1.0]
    for name, error in (("unbuildable", "SandboxError"), ("silent-grader", "TaskError")):
        assert len(found[name]) == 2
        for trace in found[name]:
            assert not trace["ok"]
            assert not any(trace["rewards"].values())
            assert [each["type"] for each in trace["errors"]] == [error]


def test_a_harness_with_a_shell_of_its_own_is_refused_on_this_machine(evaluation: NewEvaluation) -> None:
    done = evaluation("v04")
    tasks = done.folder / "tasks"
    SmallTask("touch", (f"touch {done.folder}/touched",), "true", 1.0).write(tasks)
    done.run(command(done, tasks, "--env.agent.harness.id", "bash"))
    [trace] = traces_of(done)
    assert "would run the model's commands on this machine" in trace["errors"][0]["message"]
    assert not (done.folder / "touched").exists()


@pytest.mark.long  # test_terminus_harness.py has the same runtime
@pytest.mark.engine
def test_a_harness_of_verifiers_on_its_own_docker_runtime_with_an_image_of_ours(
    evaluation: NewEvaluation, container_engine: Engine
) -> None:
    done = evaluation("v04")
    for task in TEN:
        if task.name in ("c-answer-old", "d-wrong-answer-old"):
            give_uv(task.write(done.folder / "tasks"))
    where = ["--env.taskset.place", "runtime", "--env.agent.runtime.type", "docker", "--env.agent.harness.id", "bash"]
    done.run(command(done, done.folder / "tasks", *where), DOCKER_HOST=container_engine.host)
    scores = {}
    for trace in traces_of(done):
        assert trace["ok"], trace["errors"]
        assert trace["agent"]["runtime"]["type"] == "docker"
        assert trace["agent"]["runtime"]["image"].startswith("localhost/seatrial:")
        assert (trace["agent"]["runtime"]["cpu"], trace["agent"]["runtime"]["memory"]) == (1.0, 2.0)
        scores[trace["task"]["data"]["name"]] = trace["rewards"]["solved"]["score"]
        assert len(trace["info"]["terminalbench"]["tests"]) == 2
    assert scores == {"c-answer-old": 1.0, "d-wrong-answer-old": 0.0}


def test_an_interrupted_evaluation_leaves_no_sandbox(evaluation: NewEvaluation, image_cache: Path) -> None:
    done = evaluation("v04")
    SmallTask("long", ("sleep 300",), "true", 1.0).write(done.folder / "tasks")
    running = done.start(command(done, done.folder / "tasks", "-r", "4", "-c", "4"))
    until(lambda: len(sandboxes_of_rollouts(image_cache, running.pid)) == 4, "four sandboxes")
    mine = sandboxes_of_rollouts(image_cache, running.pid)
    os.kill(running.pid, signal.SIGINT)
    running.wait(LIMIT_SEC)
    until(lambda: not traces(image_cache, mine), "nothing left")
