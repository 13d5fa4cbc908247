"""Runs one try and grades it. The engine reaches sandboxes and models only through this port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task
from seatrial.domain.trial import Phase, Trial
from seatrial.system.growing_files import FileView


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that a runner needs for one try."""

    trial: Trial
    task: Task
    task_dir: Path
    """The task's files as they were submitted; read only."""
    job: JobSpec
    agent: AgentSpec
    work_dir: Path
    """An empty directory for this try. The files in it are saved afterwards."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Provider keys by environment name. The runner never logs or stores them. It passes them to a sandbox only if
    ``keys_may_enter`` and the sandbox cannot reach the gate."""
    keys_are_the_jobs: bool = True
    """Whether all keys came with the job, and none belongs to the installation."""
    keys_may_enter: bool = True
    """Whether the keys may go into a sandbox that cannot reach the gate."""
    replay: Path | None = None
    """The record whose answers the model calls get, on this machine. The runner opens it before the sandbox starts."""
    ends_at: datetime | None = None
    """When the whole try has to be over; the caller ends it then."""
    save_state_to: Path | None = None
    """Where the runner leaves what the agent did before it is graded. The folder does not exist yet, and appears whole
    or not at all. ``None``: nothing is kept."""
    earlier_state: Path | None = None
    """Such a folder of an earlier try, whose worker was lost while it graded. The agent does not run again."""


class Window(Protocol):
    """Reads files of a running try inside its sandbox, before they are copied to ``work_dir``."""

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView] | None:
        """The files, by their later names below ``work_dir``; ``None`` while there is no sandbox.

        ``seen`` says how much of each file is known. Never raises. There is one call at a time."""


class Progress(Protocol):
    """Receives the reports of a runner. Calls return at once and never raise."""

    async def phase(self, phase: Phase, step: str | None = None) -> None: ...

    def spent(self, usage: Usage) -> None:
        """The usage so far. The runner reports it before ``run`` raises."""

    def shows(self, window: Window) -> None:
        """Passes a view into the sandbox, which works from now on."""


class Runner(Protocol):
    async def run(self, order: Order, progress: Progress) -> Result:
        """Returns a result in every case. Faults become the outcome ``error`` with a cause.

        A cancellation stops the try, removes its sandbox, and raises ``CancelledError`` again."""
