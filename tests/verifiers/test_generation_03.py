"""verifiers 0.3: the command of the document as it is printed there, and what it leaves in its results."""

from __future__ import annotations

import math
import os
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import traces
from tests.verifiers.conftest import NewEvaluation
from tests.verifiers.generations import Evaluation, sandboxes_of_rollouts
from tests.verifiers.tasks import TEN, SmallTask, write_faulty, write_ten
from tests.waiting import LIMIT_SEC, until

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]

MODULE = "environments.terminalbench.vf_terminalbench"


def printed(evaluation: Evaluation, examples: int, rollouts: int) -> list[str]:
    """As the document prints it, with another address and model."""
    return (
        f"--api-base-url {evaluation.models} --api-key-var OPENROUTER_API_KEY --model shell --num-examples {examples} "
        f"--rollouts-per-example {rollouts} --max-tokens 16384 {MODULE}"
    ).split()


def saved(*more: str) -> list[str]:
    return ["--save-results", "--output-dir", "results", *more]


@pytest.fixture(scope="module")
def ten(evaluation: NewEvaluation) -> list[dict[str, Any]]:
    done = evaluation("v03")
    columns = ["--state-columns", "agent_output,test_results,rewards"]
    done.run([*printed(done, 10, 2), *saved(*columns)], TB_TASKS_DIR=str(write_ten(done.folder / "tasks")))
    return done.lines("results.jsonl")


def test_ten_examples_twice_get_the_scores_that_their_tests_give(ten: list[dict[str, Any]]) -> None:
    scores = defaultdict(list)
    for line in ten:
        scores[line["info"]["task_id"]].append(line["reward"])
    assert scores == {task.name: [task.score, task.score] for task in TEN}
    assert not any(line["error"] for line in ten)


def test_the_state_carries_what_the_agent_saw_and_what_each_test_said(ten: list[dict[str, Any]]) -> None:
    line = next(line for line in ten if line["info"]["task_id"] == "d-wrong-answer-old")
    assert "echo 41 > /app/answer.txt" in line["agent_output"]
    assert {test["name"].rpartition("::")[2]: test["status"] for test in line["test_results"]} == {
        "test_checked": "failed",
        "test_always": "passed",
    }


def test_the_model_had_one_tool_and_saw_a_long_answer_from_its_end(ten: list[dict[str, Any]]) -> None:
    line = next(line for line in ten if line["info"]["task_id"] == "i-much-output")
    [tool] = line["tool_defs"]
    assert tool["name"] == "execute_commands"
    assert set(tool["parameters"]["properties"]) == {"commands", "reasoning"}
    [answer] = [message["content"] for message in line["completion"] if message["role"] == "tool"]
    assert len(answer) < 25_000
    assert "characters of this output are left out" in answer
    assert answer.rstrip().endswith("finished-42")


PYTHON = """
import asyncio, json, math
from environments.terminalbench.vf_terminalbench import SolvedRubric, load_environment

def names(env):
    return [row["info"]["task_id"] for row in env.get_dataset()]

async def scored(*scores):
    states = [{"score": score, "prompt": [], "completion": [], "trajectory": []} for score in scores]
    await SolvedRubric().score_group(states)
    return [(None if math.isnan(state["reward"]) else state["reward"], state["advantage"]) for state in states]

print(json.dumps({
    "all": names(load_environment()),
    "ten": names(load_environment(num_examples=10)),
    "two": names(load_environment(num_examples=2)),
    "old": names(load_environment(categories=["old"], exclude=["d-*"])),
    "tools": [tool.name for tool in load_environment().tool_defs],
    "scored": asyncio.run(scored(1.0, None, 0.0)),
}))
"""


def test_the_documents_python_and_what_an_error_does_to_its_group(evaluation: NewEvaluation) -> None:
    done = evaluation("v03")
    write_ten(done.folder / "terminal-bench" / "tasks")
    SmallTask("k-eleventh", ("true",), "true", 1.0).write(done.folder / "terminal-bench" / "tasks")
    told = done.python(PYTHON)
    every = [task.name for task in TEN]
    assert told["all"] == [*every, "k-eleventh"]
    assert told["ten"] == every
    assert told["two"] == every[:2]
    assert told["old"] == ["c-answer-old", "g-one-visit-old", "h-lasting-directory-old"]
    assert told["tools"] == ["execute_commands"]
    assert told["scored"] == [[1.0, 0.5], [None, 0.0], [0.0, -0.5]], "an error has no score, and changes no other's"


@pytest.mark.long  # as with 0.4, on the same rollouts
def test_a_fault_of_image_or_grader_is_an_error_and_never_a_score(evaluation: NewEvaluation) -> None:
    done = evaluation("v03")
    arguments = [*printed(done, 3, 1), *saved("--disable-env-server")]
    done.run(arguments, TB_TASKS_DIR=str(write_faulty(done.folder / "tasks")))
    lines = {line["info"]["task_id"]: line for line in done.lines("results.jsonl")}
    assert lines["good"]["reward"] == 1.0
    assert lines["good"]["error"] is None
    for name, fault in (("unbuildable", "ImageFault"), ("silent-grader", "VerifierFault")):
        assert math.isnan(lines[name]["reward"]), lines[name]
        assert lines[name]["error"]["error"] == "SandboxError", lines[name]["error"]
        assert fault in lines[name]["error"]["error_chain_repr"]


@pytest.mark.long  # as with 0.4, on the same rollouts
def test_an_interrupted_evaluation_leaves_no_sandbox(evaluation: NewEvaluation, image_cache: Path) -> None:
    done = evaluation("v03")
    SmallTask("long", ("sleep 300",), "true", 1.0).write(done.folder / "tasks")
    running = done.start(printed(done, 1, 4), TB_TASKS_DIR=str(done.folder / "tasks"))
    until(lambda: len(sandboxes_of_rollouts(image_cache, running.pid)) == 4, "four sandboxes")
    mine = sandboxes_of_rollouts(image_cache, running.pid)
    os.kill(running.pid, signal.SIGINT)
    running.wait(LIMIT_SEC)
    until(lambda: not traces(image_cache, mine), "nothing left")
