"""Runs one attempt from start to graded end. The only way the engine reaches a sandbox or a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task
from seatrial.domain.trial import Phase, Trial
from seatrial.growing_files import FileView


@dataclass(frozen=True, slots=True)
class Order:
    """Everything a runner needs for one attempt."""

    trial: Trial
    task: Task
    task_dir: Path
    """The task's files as they were submitted; read only."""
    job: JobSpec
    agent: AgentSpec
    work_dir: Path
    """An empty directory of this attempt alone; what is left in it is kept."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Provider keys by environment name. Never logged, stored or handed to a sandbox by the runner itself."""
    keys_are_the_jobs: bool = True
    """Whether the keys came with the job, and none of them is the installation's own."""


class Window(Protocol):
    """Shows what a running attempt writes where only its sandbox has it, until that is copied to ``work_dir``."""

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView] | None:
        """Files by the names they will have below ``work_dir``; ``None`` while there is nothing to look into.

        ``seen`` says how much of each is known. Never raises, and is never called again before it answered."""
        ...


class Progress(Protocol):
    """How a runner tells what happens. Calls are quick and never raise."""

    async def phase(self, phase: Phase, step: str | None = None) -> None: ...

    def spent(self, usage: Usage) -> None:
        """What the attempt has cost so far; told before anything but a result leaves ``run``."""
        ...

    def shows(self, window: Window) -> None:
        """From now on what happens in the sandbox can be watched."""
        ...


class Runner(Protocol):
    async def run(self, order: Order, progress: Progress) -> Result:
        """The result, whatever happened: faults come back as the outcome ``error`` with a cause.

        Cancelling the task stops the attempt and cleans up before ``CancelledError`` is re-raised."""
        ...
