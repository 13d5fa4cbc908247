"""Terminal-Bench for verifiers 0.3: ``load_environment`` with every task of a folder, one tool, a binary reward.

    uv run vf-eval … environments.terminalbench.vf_terminalbench

A thin layer: ``seatrial.rollouts`` provides tasks, sandboxes and grading. The package ``terminalbench`` beside this
file is for verifiers 0.4.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import verifiers as vf
from datasets import Dataset
from seatrial.domain.task import TaskSelection
from seatrial.errors import NotFound, SeatrialError
from seatrial.rollouts.graded import Graded
from seatrial.rollouts.host import RolloutHost
from seatrial.rollouts.rollout import Rollout
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask, TaskFinder
from seatrial.settings import Settings

USUAL_PLACE = Path("terminal-bench/tasks")
PLACE_VARIABLE = "TB_TASKS_DIR"
MAX_TURNS = 100

SYSTEM_PROMPT = """You solve a task in a Linux container. Use the tool `execute_commands` to run shell commands in it; \
they must not wait for input. The working directory lasts from one command to the next. When the task is done, answer \
without calling the tool: then the task's tests are run."""


def load_environment(
    num_examples: int = -1,
    tasks_dir: str | Path | None = None,
    dataset: str | None = None,
    names: Sequence[str] = (),
    exclude: Sequence[str] = (),
    categories: Sequence[str] = (),
    difficulties: Sequence[str] = (),
    sandbox: str = "auto",
    timeout_multiplier: float = 1.0,
    command_timeout_sec: float | None = 300.0,
    longest_answer: int = 20_000,
    max_turns: int = MAX_TURNS,
    system_prompt: str = SYSTEM_PROMPT,
    **kwargs: Any,
) -> TerminalBenchEnv:
    """Every task as an example, sorted by name; ``num_examples`` takes the first n, -1 all.

    Tasks come from ``tasks_dir`` (a task, an archive, or a folder of either), otherwise from ``dataset`` (registered
    in Seatrial: ``name`` or ``name@version``), otherwise from ``TB_TASKS_DIR``, otherwise from
    ``terminal-bench/tasks``. ``names`` and ``exclude`` are patterns such as ``fix-*``. The task's own limits of
    time, memory and CPUs apply.
    """
    settings = Settings()
    rules = RolloutRules(
        sandbox=sandbox,  # type: ignore[arg-type]  # checked there
        timeout_multiplier=timeout_multiplier,
        command_timeout_sec=command_timeout_sec,
        longest_answer=longest_answer,
    )
    selection = TaskSelection(
        include=tuple(names),
        exclude=tuple(exclude),
        categories=tuple(categories),
        difficulties=tuple(difficulties),
        limit=num_examples if num_examples > 0 else None,
    )
    finder = TaskFinder(settings)
    if dataset is not None and tasks_dir is None:
        found = finder.dataset(dataset, selection)
    else:
        found = finder.in_place(_place(tasks_dir), selection)
    host = RolloutHost(settings, rules)
    return TerminalBenchEnv(host, found.tasks, max_turns=max_turns, system_prompt=system_prompt, **kwargs)


def _place(tasks_dir: str | Path | None) -> Path:
    named = tasks_dir or os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(named).expanduser()
    checkout = Path(__file__).resolve().parents[2]
    for place in (USUAL_PLACE, checkout / USUAL_PLACE):
        if place.is_dir():
            return place
    raise NotFound(
        f"There is no folder {USUAL_PLACE}.", fix=f"Set {PLACE_VARIABLE}, or pass tasks_dir: -a '{{\"tasks_dir\": …}}'."
    )


class SolvedRubric(vf.Rubric):
    """1.0 if every test passed, otherwise 0.0. A rollout that ended in an error has no score: NaN, and its ``error``
    is set.

    Verifiers turns an exception in a reward function into 0.0, so nothing here can fail.
    """

    def __init__(self) -> None:
        super().__init__(funcs=[solved])

    async def score_group(self, states: list[vf.State]) -> None:
        """Like the original, but rollouts without a score do not count in the group's mean."""
        for state in states:
            await self.score_rollout(state)
        scores = [state["reward"] for state in states if not math.isnan(state["reward"])]
        mean = sum(scores) / len(scores) if scores else 0.0
        for state in states:
            state["advantage"] = 0.0 if math.isnan(state["reward"]) else state["reward"] - mean
            for step in state["trajectory"]:
                step["advantage"] = state["advantage"] if step["advantage"] is None else step["advantage"]
                step["reward"] = state["reward"] if step["reward"] is None else step["reward"]


async def solved(state: vf.State) -> float:
    score = state.get("score")
    return math.nan if score is None else float(score)


class TerminalBenchEnv(vf.StatefulToolEnv):
    """Each rollout has its own sandbox, from ``setup_state`` until it is graded or abandoned.

    The state carries ``agent_output``, ``test_results``, ``test_output``, ``rewards`` and ``marks``.
    """

    def __init__(self, host: RolloutHost, tasks: Sequence[FoundTask], **kwargs: Any) -> None:
        self._host = host
        self._tasks = {task.task.digest: task for task in tasks}
        self._rollouts: dict[str, Rollout] = {}
        super().__init__(
            dataset=Dataset.from_list([_example(task) for task in tasks]),
            rubric=SolvedRubric(),
            stop_errors=[vf.SandboxError],
            **kwargs,
        )
        self.add_tool(self.execute_commands, args_to_skip=["rollout"])

    async def execute_commands(self, commands: list[str], reasoning: str = "", *, rollout: Rollout) -> str:
        """Runs non-interactive shell commands one after another in the task's container and returns what they print.

        Args:
            commands: The commands, in order. The working directory lasts from one to the next.
            reasoning: Why these commands; for the reader only.
        """
        listed = [commands] if isinstance(commands, str) else [str(command) for command in commands]
        try:
            return await rollout.execute_commands(listed, reasoning)
        except SeatrialError as fault:
            raise _error(fault) from fault

    async def setup_state(self, state: vf.State) -> vf.State:
        try:
            rollout = await self._host.open(self._tasks[state["info"]["digest"]])
        except SeatrialError as fault:
            raise _error(fault) from fault
        self._rollouts[state["trajectory_id"]] = rollout
        return await super().setup_state(state) or state

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: vf.Messages, state: vf.State, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "rollout": self._rollouts[state["trajectory_id"]]}

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        try:
            return await super().env_response(messages, state, **kwargs)
        except vf.ToolCallError as error:
            if isinstance(error.__cause__, vf.SandboxError):  # only infrastructure errors are retried
                raise error.__cause__ from error.__cause__.__cause__
            raise

    @vf.stop
    async def out_of_time(self, state: vf.State) -> bool:
        rollout = self._rollouts.get(state["trajectory_id"])
        return rollout is not None and rollout.out_of_time

    @vf.cleanup(priority=-100)
    async def grade(self, state: vf.State) -> None:
        """The last step of a rollout. Not a reward function: an error there would count as 0.0."""
        rollout = self._rollouts.pop(state["trajectory_id"], None)
        if rollout is None:
            return
        try:
            if state.get("error") is None and not _is_cancelled():
                _note(state, await rollout.grade())
        except SeatrialError as fault:
            state["error"] = _error(fault)
        finally:
            state["agent_output"] = "\n".join(rollout.transcript)
            await rollout.close()


def _example(task: FoundTask) -> dict[str, Any]:
    facts = task.task
    info = {
        "task_id": facts.name,
        "digest": facts.digest,
        "category": facts.category,
        "difficulty": facts.difficulty,
        "tags": list(facts.tags),
    }
    return {"question": facts.instruction, "answer": "", "info": info}


def _note(state: vf.State, graded: Graded) -> None:
    state["score"] = graded.score
    state["rewards"] = graded.rewards
    state["test_results"] = [test.model_dump(mode="json") for test in graded.tests]
    state["test_output"] = graded.verifier_output
    state["marks"] = [mark.value for mark in graded.marks]


def _error(fault: SeatrialError) -> vf.SandboxError:
    """An infrastructure error for the framework: it ends the rollout, is retried with ``--max-retries``, and
    trainers exclude the rollout."""
    error = vf.SandboxError(f"{type(fault).__name__}: {fault}")
    error.__cause__ = fault
    return error


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
