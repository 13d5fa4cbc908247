"""What can be set on the command line: ``--env.taskset.*`` chooses tasks, ``--env.taskset.task.*`` how they run."""

from pathlib import Path
from typing import Literal

import verifiers.v1 as vf
from pydantic import Field
from seatrial.domain.task import TaskSelection
from seatrial.rollouts.rules import RolloutRules

PLACE_VARIABLE = "TB_TASKS_DIR"
USUAL_PLACE = Path("terminal-bench/tasks")
GRACE_SEC = 900.0
"""Verifiers holds the task's limit for the agent by itself, and starts the clock later than the sandbox does."""

Place = Literal["sandbox", "runtime"]


class TerminalBenchTaskConfig(vf.TaskConfig):
    sandbox: Literal["auto", "oci", "docker"] = "auto"
    """Seatrial's sandbox for ``place=sandbox``."""
    timeout_multiplier: float = Field(1.0, gt=0)
    """Stretches or shrinks every limit of the task; its own hold at 1."""
    command_timeout_sec: float | None = Field(300.0, gt=0)
    """Longest time of one command of ``execute_commands``."""
    longest_answer: int = Field(20_000, gt=0)
    """Characters that one call of ``execute_commands`` may answer with; the end is kept."""

    @property
    def rules(self) -> RolloutRules:
        return RolloutRules(
            sandbox=self.sandbox,
            timeout_multiplier=self.timeout_multiplier,
            grace_sec=GRACE_SEC,
            command_timeout_sec=self.command_timeout_sec,
            longest_answer=self.longest_answer,
        )


class TerminalBenchConfig(vf.TasksetConfig):
    tasks: Path | None = None
    """A folder of tasks or archives, a task, or an archive. Unset: ``TB_TASKS_DIR``, else ``terminal-bench/tasks``."""
    dataset: str | None = None
    """A dataset that is registered in Seatrial instead: ``name`` or ``name@version``."""
    names: list[str] = Field(default_factory=list)
    """Only tasks whose name matches one of these patterns, such as ``fix-*``."""
    exclude: list[str] = Field(default_factory=list)
    """No tasks whose name matches one of these."""
    categories: list[str] = Field(default_factory=list)
    difficulties: list[str] = Field(default_factory=list)
    place: Place = "sandbox"
    """``sandbox``: tasks live on Seatrial's sandboxes and the model has the tool ``execute_commands``. ``runtime``: on
    the harness's own container runtime, with images that Seatrial built in the engine; any harness."""
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()
    task: TerminalBenchTaskConfig = TerminalBenchTaskConfig()

    @property
    def selection(self) -> TaskSelection:
        return TaskSelection(
            include=tuple(self.names),
            exclude=tuple(self.exclude),
            categories=tuple(self.categories),
            difficulties=tuple(self.difficulties),
        )
