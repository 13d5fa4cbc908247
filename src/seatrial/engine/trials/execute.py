"""One claimed trial from its files to its recorded result: prepare → run → keep → record.

Called by the worker with a trial that it just claimed. The store is the truth: whatever happens here, a result counts
only if the store still knows this attempt as the current one.

Once the runner returned, its result is recorded, whatever happens after it: files that cannot be kept are listed with
the reason. A fault that nobody foresaw is recorded as an error with its own words, never left to a lease to run out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.result import Failure, FileLeftOut, FilesLeftOut, Result
from seatrial.domain.task import Task
from seatrial.domain.trial import Cause, Outcome, Phase, Trial, blamed
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.ceilings import Ceilings
from seatrial.engine.jobs.keys import TrialKeys
from seatrial.engine.live.watch import Followed, LiveLog
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.found_files import KeepLimits
from seatrial.engine.trials.phases import PhaseLog, TrialProgress
from seatrial.engine.trials.recordable import essential, recordable
from seatrial.engine.trials.save_files import FileKeeper
from seatrial.engine.trials.trial_files import attempt_prefix
from seatrial.errors import NotFound, SeatrialError, StaleAttempt, StoreUnavailable, TrialFault
from seatrial.ports.blobs import Blobs
from seatrial.ports.runner import Order, Runner
from seatrial.ports.store import Store

log = logging.getLogger(__name__)

_STORE_PATIENCE_SEC = 1.0
_LAST_WORDS_SEC = 5.0
"""How long a worker that is stopped while it keeps files tries to record the result without them."""
_LONGEST_MESSAGE = 500
_LONGEST_TRACEBACK = 20_000
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
        keep_limits: KeepLimits | None = None,
        blobs_patience_sec: float = 120.0,
    ) -> None:
        self._store = store
        self._keeper = FileKeeper(blobs, keep_limits, blobs_patience_sec)
        self._blobs_patience_sec = blobs_patience_sec
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
        try:
            job = await self._patiently(lambda: self._job(trial.job_id))
        except NotFound:  # the job was deleted, and its trials with it
            return
        directory = self._work_dir / f"{trial.id}-{trial.attempt}"
        try:
            result = await self._result(trial, job, directory, why_stopped, sandbox_gone)
            await self._record(trial, job, result)
        finally:
            await self._keeper.remove(directory)

    async def _result(
        self,
        trial: Trial,
        job: Job,
        directory: Path,
        why_stopped: Callable[[], Stop | None],
        sandbox_gone: Callable[[], None],
    ) -> Result:
        """Runs the attempt and keeps its files. Raises nothing but ``CancelledError``."""
        secrets: Mapping[str, str] = {}
        result: Result | None = None
        try:
            keys = await self._patiently(lambda: self._secrets(job, job.spec.agents[trial.agent_index]))
            secrets = keys.values
            await self._keeper.remove(directory)
            directory.mkdir(parents=True)
            with self.live.follow(trial, directory, secrets.values()) as followed:
                progress = self._phases.of(trial, followed.show)
                try:
                    result = await self._attempt(trial, job, directory, keys, progress)
                except asyncio.CancelledError:
                    sandbox_gone()
                    self.live.let_go(followed)
                    await self._stopped(trial, job, directory, secrets, progress, why_stopped() or Stop.LEAVING)
                    raise
                sandbox_gone()
                await self._tell_rest(followed)
        except Exception as fault:  # of ours, before or after the attempt
            log.exception("Unexpected fault around a trial")
            result = result or _unexpected(fault, Phase.PREPARING)
        sandbox_gone()
        return await self._keep_or_say(trial, job, result, directory, secrets)

    async def _tell_rest(self, followed: Followed) -> None:
        """It is only watched: nothing about a result depends on it."""
        try:
            if followed.was_looked_at:  # it took long enough for somebody to watch, and to hear all before its end
                await self._phases.catch_up()
            await self.live.catch_up(followed)
        except Exception:
            log.exception("The end of an attempt could not be told live")

    async def _attempt(
        self, trial: Trial, job: Job, directory: Path, keys: TrialKeys, progress: TrialProgress
    ) -> Result:
        limit = min(trial.limit_sec or job.spec.trial_limit_sec or self._limit_sec, self._limit_sec)
        started = self._clock()
        try:
            async with asyncio.timeout(limit):
                task = await self._patiently(lambda: self._task(trial.task.digest))
                self._ceilings.check_task(task, job.spec.timeout_multiplier)  # it may be older than the ceiling
                order = Order(
                    trial=trial,
                    task=task,
                    task_dir=await self._patiently(lambda: self._library.directory(task), self._blobs_patience_sec),
                    job=job.spec,
                    agent=job.spec.agents[trial.agent_index],
                    work_dir=directory,
                    secrets=keys.values,
                    keys_are_the_jobs=keys.are_the_jobs,
                )
                return await self._runner.run(order, progress)
        except TimeoutError:
            elapsed = (self._clock() - started).total_seconds()
            result = _overdue(limit, progress.reached, elapsed)
        except TrialFault as fault:
            result = _faulty(fault, Cause(fault.cause))
        except SeatrialError as fault:
            result = _faulty(fault, Cause.SANDBOX)
        except Exception as fault:
            log.exception("Unexpected fault in a trial")
            result = _unexpected(fault, progress.reached)
        return result.model_copy(update={"usage": progress.usage})

    async def _keep_or_say(
        self, trial: Trial, job: Job, result: Result, directory: Path, secrets: Mapping[str, str]
    ) -> Result:
        """Whoever stops the worker now loses the files, not the result."""
        try:
            return await self._keep(trial, result, directory, secrets)
        except asyncio.CancelledError:
            lost = FileLeftOut(path="*", reason="The worker was stopped while they were being kept.")
            result = recordable(result, secrets.values())
            result = result.model_copy(update={"files_left_out": FilesLeftOut(count=1, examples=(lost,))})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SEC):
                    await self._record(trial, job, result)
            raise

    async def _keep(self, trial: Trial, result: Result, directory: Path, secrets: Mapping[str, str]) -> Result:
        prefix = attempt_prefix(trial.id, trial.attempt)
        kept = await self._keeper.keep(prefix, directory, tuple(secrets.values()))
        result, left_out = recordable(result, secrets.values()), kept.left_out
        if result.files_left_out is not None:  # what had stayed in the sandbox
            left_out = result.files_left_out.and_also(left_out)
        update = {"files": kept.files, "file_listing": kept.listing, "files_left_out": left_out}
        return result.model_copy(update=update)

    async def _record(self, trial: Trial, job: Job, result: Result) -> None:
        """Until the store took it or refuses it: a finished trial is too dear to lose to a store that restarts."""
        try:
            await self._patiently(lambda: self._write(trial, job, result))
        except StaleAttempt:
            return
        except Exception as fault:
            log.exception("The store could not take a result; recording what matters of it")
            message = f"{result.message} (The rest could not be recorded: {type(fault).__name__}.)".strip()
            with contextlib.suppress(StaleAttempt):
                await self._patiently(lambda: self._write(trial, job, essential(result, message)))

    async def _patiently[T](self, work: Callable[[], Awaitable[T]], patience_sec: float = float("inf")) -> T:
        """Again and again while the store, or the place for files, does not answer."""
        until = time.monotonic() + patience_sec
        while True:
            try:
                return await work()
            except StoreUnavailable as fault:
                if time.monotonic() >= until:
                    raise
                log.warning("Waiting for the store: %s", fault)
                await asyncio.sleep(_STORE_PATIENCE_SEC)

    async def _write(self, trial: Trial, job: Job, result: Result) -> None:
        if result.outcome is Outcome.ERROR and job.spec.retry.allows(result.cause, trial.attempts_made):
            delay = timedelta(seconds=job.spec.retry.delay(trial.attempts_made))
            await self._store.try_again(trial.id, trial.attempt, result, delay, self._clock())
        else:
            await self._store.finish(trial.id, trial.attempt, result, self._clock())
            self.live.ended(trial)

    async def _stopped(
        self,
        trial: Trial,
        job: Job,
        directory: Path,
        secrets: Mapping[str, str],
        progress: TrialProgress,
        why: Stop,
    ) -> None:
        """Shielded from a second cancellation: what was done so far is kept, and the store learns how it ended."""
        with contextlib.suppress(StaleAttempt, NotFound):
            if why is Stop.LEAVING:
                await asyncio.shield(self._store.give_back(trial.id, trial.attempt, self._clock()))
            elif why is Stop.CANCELLED:
                message = "The trial was cancelled while it ran."
                result = Result(outcome=Outcome.CANCELLED, message=message, usage=progress.usage)
                result = await asyncio.shield(self._keep(trial, result, directory, secrets))
                await asyncio.shield(self._record(trial, job, result))

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


def _unexpected(fault: Exception, reached: Phase) -> Result:
    """A fault that nobody foresaw, in its own words."""
    kind = type(fault).__name__
    words = " ".join(str(fault).split())
    trace = "".join(traceback.format_exception(fault))[-_LONGEST_TRACEBACK:]
    return Result(
        outcome=Outcome.ERROR,
        cause=blamed(reached),
        message=(f"{kind}: {words}" if words else kind)[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode(),
        failure=Failure(
            type=kind,
            message=words[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode(),
            traceback=trace.encode("utf-8", "replace").decode(),
        ),
    )
