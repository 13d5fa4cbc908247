"""One claimed trial from its files to its recorded result: prepare → run → keep → record.

Called by the worker with a trial that it just claimed. The store is the truth: whatever happens here, a result counts
only if the store still knows this attempt as the current one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.result import Failure, Result, StoredFile
from seatrial.domain.task import Task
from seatrial.domain.trial import Cause, Outcome, Phase, Trial, blamed
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.ceilings import Ceilings
from seatrial.engine.jobs.keys import TrialKeys
from seatrial.engine.live.watch import Followed, LiveLog
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.save_files import keep_files, redact_result
from seatrial.engine.trials.trial_files import attempt_prefix
from seatrial.errors import SeatrialError, StaleAttempt, StoreUnavailable, TrialFault
from seatrial.ports.blobs import Blobs
from seatrial.ports.runner import Order, Runner
from seatrial.ports.store import Store
from seatrial.removal import remove_tree

_STORE_PATIENCE_SEC = 1.0
_TASKS_REMEMBERED = 1000
_JOBS_REMEMBERED = 100
_NO_CEILINGS = Ceilings()


class Stop(Enum):
    """Why a running attempt is being cancelled."""

    CANCELLED = "somebody cancelled it"
    LOST = "its lease was lost; another worker may have it"
    LEAVING = "the worker is leaving"


class Executor:
    """Runs claimed trials. One instance per worker; ``execute`` is called for many trials at once."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        runner: Runner,
        library: TaskLibrary,
        phases: PhaseLog,
        live: LiveLog,
        clock: Clock,
        work_dir: Path,
        limit_sec: float,
        secrets: Callable[[Job, AgentSpec], Awaitable[TrialKeys]],
        ceilings: Ceilings = _NO_CEILINGS,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._runner = runner
        self._library = library
        self._phases = phases
        self.live = live
        self._clock = clock
        self._work_dir = work_dir
        self._limit_sec = limit_sec
        self._secrets = secrets
        self._ceilings = ceilings
        self._jobs: dict[int, Job] = {}
        self._tasks: dict[str, Task] = {}

    async def execute(
        self, trial: Trial, why_stopped: Callable[[], Stop | None], sandbox_gone: Callable[[], None] = lambda: None
    ) -> None:
        """Never raises for what happens inside a trial. ``why_stopped`` explains a cancellation of this task.

        ``sandbox_gone`` is called once nothing runs any more: what is left is to keep the files and record the result,
        and another trial may have the place."""
        job = await self._job(trial.job_id)
        keys = await self._secrets(job, job.spec.agents[trial.agent_index])
        secrets = keys.values
        async with self._directory(trial) as directory:
            with self.live.follow(trial, directory, secrets.values()) as followed:
                try:
                    result = await self._attempt(trial, job, directory, keys, followed)
                except asyncio.CancelledError:
                    sandbox_gone()
                    self.live.let_go(followed)
                    await self._stopped(trial, directory, secrets, why_stopped() or Stop.LEAVING)
                    raise
                sandbox_gone()
                if followed.was_looked_at:  # it took long enough for somebody to watch, and to hear all before its end
                    await self._phases.catch_up()
                await self.live.catch_up(followed)
            result = await self._keep(trial, result, directory, secrets)
            await self._record(trial, job, result)

    async def _attempt(self, trial: Trial, job: Job, directory: Path, keys: TrialKeys, followed: Followed) -> Result:
        limit = min(trial.limit_sec or job.spec.trial_limit_sec or self._limit_sec, self._limit_sec)
        started = self._clock()
        progress = self._phases.of(trial, followed.show)
        try:
            async with asyncio.timeout(limit):
                task = await self._task(trial.task.digest)
                self._ceilings.check_task(task, job.spec.timeout_multiplier)  # it may be older than the ceiling
                order = Order(
                    trial=trial,
                    task=task,
                    task_dir=await self._library.directory(task),
                    job=job.spec,
                    agent=job.spec.agents[trial.agent_index],
                    work_dir=directory,
                    secrets=keys.values,
                    keys_are_the_jobs=keys.are_the_jobs,
                )
                return await self._runner.run(order, progress)
        except TimeoutError:
            elapsed = (self._clock() - started).total_seconds()
            return _overdue(limit, progress.reached, elapsed)
        except TrialFault as fault:
            return _faulty(fault, Cause(fault.cause))
        except SeatrialError as fault:
            return _faulty(fault, Cause.SANDBOX)

    async def _keep(self, trial: Trial, result: Result, directory: Path, secrets: Mapping[str, str]) -> Result:
        prefix = attempt_prefix(trial.id, trial.attempt)
        files: tuple[StoredFile, ...] = await keep_files(self._blobs, prefix, directory, tuple(secrets.values()))
        return redact_result(result, secrets.values()).model_copy(update={"files": files})

    async def _record(self, trial: Trial, job: Job, result: Result) -> None:
        """Until the store took it or refuses it: a finished trial is too dear to lose to a store that restarts."""
        while True:
            try:
                with contextlib.suppress(StaleAttempt):
                    await self._write(trial, job, result)
                return
            except StoreUnavailable:
                await asyncio.sleep(_STORE_PATIENCE_SEC)

    async def _write(self, trial: Trial, job: Job, result: Result) -> None:
        if result.outcome is Outcome.ERROR and job.spec.retry.allows(result.cause, trial.attempts_made):
            delay = timedelta(seconds=job.spec.retry.delay(trial.attempts_made))
            await self._store.try_again(trial.id, trial.attempt, result, delay, self._clock())
        else:
            await self._store.finish(trial.id, trial.attempt, result, self._clock())
            self.live.ended(trial)

    async def _stopped(self, trial: Trial, directory: Path, secrets: Mapping[str, str], why: Stop) -> None:
        """Shielded from a second cancellation: what was done so far is kept, and the store learns how it ended."""
        with contextlib.suppress(StaleAttempt):
            if why is Stop.LEAVING:
                await asyncio.shield(self._store.give_back(trial.id, trial.attempt, self._clock()))
            elif why is Stop.CANCELLED:
                result = Result(outcome=Outcome.CANCELLED, message="The trial was cancelled while it ran.")
                result = await asyncio.shield(self._keep(trial, result, directory, secrets))
                await asyncio.shield(self._store.finish(trial.id, trial.attempt, result, self._clock()))
                self.live.ended(trial)

    async def _task(self, digest: str) -> Task:
        """A task never changes under its digest, and a job asks for each of its tasks many times."""
        if (task := self._tasks.get(digest)) is None:
            task = await self._store.task(digest)
            _remember(self._tasks, digest, task, _TASKS_REMEMBERED)
        return task

    async def _job(self, job_id: int) -> Job:
        if (job := self._jobs.get(job_id)) is None:
            job = await self._store.job(job_id)
            _remember(self._jobs, job_id, job, _JOBS_REMEMBERED)
        return job

    @contextlib.asynccontextmanager
    async def _directory(self, trial: Trial) -> AsyncIterator[Path]:
        directory = self._work_dir / f"{trial.id}-{trial.attempt}"
        await _remove(directory)
        directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            await _remove(directory)


async def _remove(directory: Path) -> None:
    if directory.exists():
        await asyncio.to_thread(remove_tree, directory)


def _remember[Key, Value](known: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """A worker may live for months, so nothing is remembered for ever."""
    if len(known) >= most:
        known.clear()
    known[key] = value


def _overdue(limit: float, reached: Phase, elapsed: float) -> Result:
    """Time that an agent or a verifier used up is gone; only a sandbox that never got ready is worth another try."""
    message = f"The whole trial took longer than its limit of {limit:g} s; it had reached the phase {reached}."
    return Result(outcome=Outcome.ERROR, cause=blamed(reached), message=message, seconds=elapsed)


def _faulty(fault: SeatrialError, cause: Cause) -> Result:
    failure = Failure(type=type(fault).__name__, message=str(fault))
    return Result(outcome=Outcome.ERROR, cause=cause, message=str(fault), failure=failure)
