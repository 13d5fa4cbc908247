"""Command-line options: ``--env.taskset.*`` selects tasks, ``--env.taskset.task.*`` sets how they run."""

from pathlib import Path
from typing import Literal

import verifiers.v1 as vf
from pydantic import Field
from seatrial.domain.task import TaskSelection
from seatrial.rollouts.rules import RolloutRules

PLACE_VARIABLE = "TB_TASKS_DIR"
USUAL_PLACE = Path("terminal-bench/tasks")
GRACE_SEC = 900.0
"""Verifiers applies the task's time limit for the agent itself, and starts its clock later than the sandbox."""

Place = Literal["sandbox", "runtime"]


class TerminalBenchTaskConfig(vf.TaskConfig):
    sandbox: Literal["auto", "oci", "docker"] = "auto"
    """Seatrial's sandbox for ``place=sandbox``."""
    timeout_multiplier: float = Field(1.0, gt=0)
    """Multiplier for all time limits of the task."""
    command_timeout_sec: float | None = Field(300.0, gt=0)
    """Timeout of one command of ``execute_commands``."""
    longest_answer: int = Field(20_000, gt=0)
    """Maximum characters that ``execute_commands`` returns; the end is kept."""

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
    """A folder of tasks or archives, a task, or an archive. Default: ``TB_TASKS_DIR``, otherwise
    ``terminal-bench/tasks``."""
    dataset: str | None = None
    """A dataset registered in Seatrial instead: ``name`` or ``name@version``."""
    names: list[str] = Field(default_factory=list)
    """Only tasks whose name matches one of these patterns, such as ``fix-*``."""
    exclude: list[str] = Field(default_factory=list)
    """Exclude tasks whose name matches one of these."""
    categories: list[str] = Field(default_factory=list)
    difficulties: list[str] = Field(default_factory=list)
    place: Place = "sandbox"
    """``sandbox``: tasks run in Seatrial's sandboxes and the model has the tool ``execute_commands``. ``runtime``:
    tasks run in the harness's own container runtime, with images that Seatrial built in the engine; works with
    any harness."""
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
