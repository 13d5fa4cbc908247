"""Creates Harbor's trials of tasks from the library, without reading a task's directory for each of them.

Harbor reads and hashes the whole directory several times for every trial. A directory of the library never changes, so
what was read is cached; every trial gets a copy. Some methods of Harbor's ``Trial`` are replaced by ones that do the
same with the cached data; a test compares each with Harbor's own. Others apply the time limits of agents and verifiers
to their own time (``own_time``), which excludes waiting for the worker, and keep unreadable files of an agent from
ending the trial before it is graded.
"""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, override

from harbor.agents.base import BaseAgent
from harbor.agents.factory import AgentFactory
from harbor.agents.oracle import OracleAgent
from harbor.models.agent.name import AgentName
from harbor.models.job.lock import TrialLock, VerifierLock, build_trial_lock
from harbor.models.task.task import Task
from harbor.models.trial.config import TaskConfig, TrialConfig
from harbor.models.trial.paths import TrialPaths
from harbor.models.trial.result import StepResult, TrialResult
from harbor.models.verifier.result import VerifierResult
from harbor.tasks.client import TaskDownloadResult
from harbor.trial.errors import (
    AgentSetupTimeoutError,
    AgentTimeoutError,
    EnvironmentStartTimeoutError,
    VerifierTimeoutError,
)
from harbor.trial.multi_step import MultiStepTrial
from harbor.trial.single_step import SingleStepTrial
from harbor.trial.trial import Trial
from harbor.verifier.base import BaseVerifier

from seatrial.sandboxes.own_time import OwnTime

_MOST_TASKS = 64
"""Maximum cached tasks: a worker may run for months, and works on few tasks at a time."""


class LibraryTask(Task):
    """A Harbor task with the digests of its directory."""

    def __init__(self, directory: Path) -> None:
        """Reads and hashes everything; seconds for a large task."""
        super().__init__(directory)
        self.found = TaskDownloadResult(path=directory, download_time_sec=0.0, cached=True)
        self._lock = build_trial_lock(
            trial_config=TrialConfig(task=TaskConfig(path=directory)), task_download_result=self.found
        )
        self._checksum: str = super().checksum

    @property
    @override
    def checksum(self) -> str:
        return self._checksum

    def copy(self) -> Self:
        """A copy for one trial, which may change the configuration."""
        own = copy.copy(self)
        own.config = self.config.model_copy(deep=True)
        return own

    def lock(self, config: TrialConfig) -> TrialLock:
        """Harbor's lock of a trial of this task."""
        return self._lock.model_copy(
            update={
                "task": self._lock.task.model_copy(),
                "timeout_multiplier": config.timeout_multiplier,
                "agent": config.agent,
                "environment": config.environment,
                "verifier": VerifierLock(
                    **dict(config.verifier), environment_mode=self._lock.verifier.environment_mode
                ),
            }
        )


class LibraryTrials:
    """Creates trials. One per worker; caches the tasks that were used last."""

    def __init__(self, library: Path, most_tasks: int = _MOST_TASKS) -> None:
        self._library = library
        self._most_tasks = most_tasks
        self._tasks: OrderedDict[Path, LibraryTask] = OrderedDict()
        self._reading = asyncio.Lock()

    async def create(self, config: TrialConfig) -> Trial:
        """Like ``Trial.create``. A directory outside the library may change, so Harbor reads it each time."""
        directory = config.task.path
        if directory is None or not directory.is_relative_to(self._library):
            return await Trial.create(config)
        task = (await self._task(directory)).copy()
        kind = _MultiStepTrial if task.has_steps else GradedTrial
        return kind(config, _task=task, _task_download_result=task.found)

    async def _task(self, directory: Path) -> LibraryTask:
        """Reads in a thread: hashing a large task takes seconds and would delay the worker's heartbeat."""
        if directory not in self._tasks:
            async with self._reading:
                if directory not in self._tasks:
                    self._tasks[directory] = await asyncio.to_thread(LibraryTask, directory)
                    if len(self._tasks) > self._most_tasks:
                        self._tasks.popitem(last=False)
        self._tasks.move_to_end(directory)
        return self._tasks[directory]


class _LibraryTrial(Trial):
    """A trial of a task that was read before."""

    task: LibraryTask
    _agent_setup_timeout_sec: Any

    @override
    def _write_trial_lock(self) -> TrialLock:
        lock = self.task.lock(self.config)
        self.paths.lock_path.write_text(lock.model_dump_json(indent=4, exclude_none=True))
        return lock

    @override
    def _init_agent(self) -> None:
        if self.config.agent.name != AgentName.ORACLE.value:
            super()._init_agent()
            return
        servers = [*self.task.config.environment.mcp_servers, *self.config.agent.mcp_servers]
        self.agent = AgentFactory.create_agent_from_config(
            self.config.agent.model_copy(update={"name": None, "import_path": f"{__name__}:{InformedOracle.__name__}"}),
            logs_dir=self.paths.agent_dir,
            logger=self.logger,
            task=self.task,
            trial_paths=self.paths,
            agent_timeout_sec=self._agent_timeout_sec,
            mcp_servers=list({server.name: server for server in servers}.values()),
            skills_dir=self._effective_skills_dir,
        )
        self.agent.session_id = f"{self.config.trial_name}__agent"
        self.agent.context_id = self._id

    @override
    async def _setup_agent(self) -> None:
        limit, self._agent_setup_timeout_sec = self._agent_setup_timeout_sec, None
        try:
            async with OwnTime(limit):
                await super()._setup_agent()
        except TimeoutError as late:
            raise AgentSetupTimeoutError(f"Agent setup timed out after {limit} seconds") from late
        finally:
            self._agent_setup_timeout_sec = limit

    @override
    async def _run_agent_phase(self, *, timeout_sec: float | None, **kwargs: Any) -> None:
        try:
            async with OwnTime(timeout_sec):
                await super()._run_agent_phase(timeout_sec=None, **kwargs)
        except TimeoutError as late:
            raise AgentTimeoutError(f"Agent execution timed out after {timeout_sec} seconds") from late

    @override
    async def _verify_with_timeout(self, verifier: BaseVerifier, timeout_sec: float | None) -> VerifierResult:
        try:
            async with OwnTime(timeout_sec):
                return await verifier.verify()
        except EnvironmentStartTimeoutError:
            raise
        except TimeoutError as late:
            raise VerifierTimeoutError(f"Verifier execution timed out after {timeout_sec} seconds") from late

    @override
    async def _sync_agent_output(self, target: TrialResult | StepResult) -> None:
        """An agent may leave an unreadable trajectory. The trial is graded anyway."""
        try:
            await super()._sync_agent_output(target)
        except Exception as fault:
            self.logger.warning("The agent's output could not be read: %r", fault)


AgentEnded = Callable[[Trial], Awaitable[None]]


class GradedTrial(_LibraryTrial, SingleStepTrial):
    """A trial whose agent's run can be kept before it is graded, or was kept by another worker and is only graded."""

    on_agent_end: AgentEnded | None = None
    """Called once between the agent's end and grading."""
    kept: TrialResult | None = None
    """What the agent's run gave in another try. Its files and the final state are in place."""

    @override
    async def _upload_injected_skills(self) -> None:
        if self.kept is None:
            await super()._upload_injected_skills()

    @override
    async def _setup_agent(self) -> None:
        if self.kept is None:
            await super()._setup_agent()

    @override
    async def _run_agent(self) -> None:
        if self.kept is None:
            await super()._run_agent()
            return
        for name in ("agent_info", "agent_setup", "agent_result", "agent_execution", "exception_info"):
            setattr(self.result, name, getattr(self.kept, name))

    @override
    async def _upload_agent_logs(self) -> None:
        if self.kept is None:
            await super()._upload_agent_logs()

    @override
    async def _collect_artifacts(self, *, stop_main_before_sidecars: bool = False) -> None:
        self._are_artifacts_collected |= self.kept is not None
        await super()._collect_artifacts(stop_main_before_sidecars=stop_main_before_sidecars)
        if self.on_agent_end is not None and self.kept is None and not self.config.verifier.disable:
            ended, self.on_agent_end = self.on_agent_end, None
            await ended(self)

    @override
    async def _recover_outputs(self) -> None:
        self.on_agent_end = None
        await super()._recover_outputs()


class _MultiStepTrial(_LibraryTrial, MultiStepTrial):
    pass


class InformedOracle(OracleAgent):
    """Harbor's oracle with the task that was already read, instead of its directory."""

    def __init__(self, task: Task, trial_paths: TrialPaths, agent_timeout_sec: float | None, **kwargs: Any) -> None:
        BaseAgent.__init__(self, **kwargs)
        self._task = task
        self._trial_paths = trial_paths
        self._agent_timeout_sec = agent_timeout_sec
        self._step_index = 0
