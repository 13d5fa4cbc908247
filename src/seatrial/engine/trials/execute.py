"""Runs one claimed trial: prepare its files, run it, save its files, record its result.

The worker calls this for each trial that it claims. A result counts only if the store still has this try as the
current one.

Once the runner has returned, its result is always recorded. Files that cannot be saved are listed with the reason. An
unexpected exception is recorded as an error with its message, so that no trial has to wait for its lease to run out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.result import Failure, FileLeftOut, FilesLeftOut, Result
from seatrial.domain.task import Task
from seatrial.domain.trial import Cause, Outcome, Phase, Trial, blamed
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.admission import Ceilings
from seatrial.engine.jobs.keys import TrialKeys
from seatrial.engine.live.watch import Followed, LiveLog
from seatrial.engine.recent import RecentlyUsed
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.call_record import fetch_record
from seatrial.engine.trials.found_files import SaveLimits
from seatrial.engine.trials.hand_over import HandOver
from seatrial.engine.trials.phases import PhaseLog, TrialProgress
from seatrial.engine.trials.recordable import essential, recordable
from seatrial.engine.trials.save_files import FileSaver
from seatrial.engine.trials.trial_files import try_prefix
from seatrial.errors import NotFound, SeatrialError, StaleTry, StoreUnavailable, TrialFault
from seatrial.ports.blobs import Blobs
from seatrial.ports.runner import Order, Runner
from seatrial.ports.store import Store

log = logging.getLogger(__name__)

_STORE_PATIENCE_SEC = 1.0
_LAST_WORDS_SEC = 5.0
"""A worker that is stopped while it saves files tries this long to record the result without them."""
_HAND_OVER_SEC = 100.0
"""A worker that leaves takes this long to bring a final state to the blobs."""
_LONGEST_MESSAGE = 500
_LONGEST_TRACEBACK = 20_000
_TASKS_REMEMBERED = 1000
_JOBS_REMEMBERED = 100


class Stop(Enum):
    """Why the worker cancels a running try."""

    CANCELLED = "it was cancelled"
    LOST = "its lease was lost; another worker may have it"
    LEAVING = "the worker is leaving"


@dataclass(frozen=True, slots=True)
class Records:
    """What a try reads from and writes to."""

    store: Store
    blobs: Blobs
    library: TaskLibrary
    clock: Clock
    final_states: HandOver | None = None
    """Without them, a worker that is lost while it grades costs the whole try."""


@dataclass(frozen=True, slots=True)
class Reports:
    """What users see of a try while it runs. No result depends on it."""

    phases: PhaseLog
    live: LiveLog

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Writes phases and live output in the background until the block ends."""
        async with self.phases, self.live:
            yield


@dataclass(frozen=True, slots=True)
class TryLimits:
    """The limits of this installation for each try."""

    seconds: float
    ceilings: Ceilings = field(default_factory=Ceilings)
    files: SaveLimits = field(default_factory=SaveLimits)
    blobs_patience_sec: float = 120.0
    """How long a try waits for a blob store that does not answer."""


class Executor:
    """Runs claimed trials. There is one per worker, and ``execute`` runs for many trials at once."""

    def __init__(
        self,
        records: Records,
        runner: Runner,
        reports: Reports,
        limits: TryLimits,
        work_dir: Path,
        keys: Callable[[Job, AgentSpec], Awaitable[TrialKeys]],
    ) -> None:
        self.reports = reports
        self._store = records.store
        self._blobs = records.blobs
        self._library = records.library
        self._clock = records.clock
        self._final_states = records.final_states
        self._saver = FileSaver(records.blobs, limits.files, limits.blobs_patience_sec)
        self._runner = runner
        self._limits = limits
        self._work_dir = work_dir
        self._keys = keys
        self._jobs: RecentlyUsed[Job] = RecentlyUsed(_JOBS_REMEMBERED)
        self._tasks: RecentlyUsed[Task] = RecentlyUsed(_TASKS_REMEMBERED)

    async def execute(
        self, trial: Trial, why_stopped: Callable[[], Stop | None], sandbox_gone: Callable[[], None] = lambda: None
    ) -> None:
        """Never raises for what happens inside a trial. ``why_stopped`` tells why this task was cancelled.

        ``sandbox_gone`` is called when the sandbox is removed. The worker may then start another trial while this one
        saves its files and records its result."""
        try:
            job = await self._patiently(lambda: self._job(trial.job_id))
        except NotFound:  # the job was deleted, and its trials with it
            return
        directory = self._work_dir / f"{trial.id}-{trial.try_number}"
        try:
            result = await self._result(trial, job, directory, why_stopped, sandbox_gone)
            await self._record(trial, job, result)
        finally:
            await self._saver.remove(directory)

    async def _result(
        self,
        trial: Trial,
        job: Job,
        directory: Path,
        why_stopped: Callable[[], Stop | None],
        sandbox_gone: Callable[[], None],
    ) -> Result:
        """Runs the try and saves its files. Raises only ``CancelledError``."""
        secrets: Mapping[str, str] = {}
        result: Result | None = None
        try:
            await self._saver.remove(directory)
            directory.mkdir(parents=True)
            keys = await self._patiently(lambda: self._keys(job, job.spec.agents[trial.agent_index]))
            secrets = keys.values
            with self.reports.live.follow(trial, directory, secrets.values()) as followed:
                progress = self.reports.phases.of(trial, followed.show)
                try:
                    result = await self._try(trial, job, directory, keys, progress)
                except asyncio.CancelledError:
                    sandbox_gone()
                    self.reports.live.let_go(followed)
                    await self._stopped(trial, job, directory, secrets, progress, why_stopped() or Stop.LEAVING)
                    raise
                sandbox_gone()
                await self._tell_rest(followed)
                if followed.steps.last_command:
                    result = result.model_copy(update={"last_command": followed.steps.last_command})
        except SeatrialError as fault:  # such as a provider key that this worker cannot open
            result = result or _faulty(fault, Cause.SANDBOX)
        except Exception as fault:  # raised by our own code before or after the run
            log.exception("Unexpected error before or after a trial")
            result = result or _unexpected(fault, Phase.PREPARING)
        sandbox_gone()
        return await self._save_or_explain(trial, job, result, directory, secrets)

    async def _tell_rest(self, followed: Followed) -> None:
        """Writes the last phases and output. An error here must not change the result."""
        try:
            if followed.was_looked_at:  # the try ran long enough for users to follow it
                await self.reports.phases.catch_up()
            await self.reports.live.catch_up(followed)
        except Exception:
            log.exception("The last live output of a try could not be written")

    async def _try(self, trial: Trial, job: Job, directory: Path, keys: TrialKeys, progress: TrialProgress) -> Result:
        most = self._limits.seconds
        limit = min(trial.limit_sec or job.spec.trial_limit_sec or most, most)
        started = self._clock()
        try:
            async with asyncio.timeout(limit):
                task = await self._patiently(lambda: self._task(trial.task.digest))
                # The operator may have lowered the ceilings after the job was submitted.
                self._limits.ceilings.check_task(task, job.spec.timeout_multiplier)
                task_dir = await self._patiently(lambda: self._library.directory(task), self._limits.blobs_patience_sec)
                order = Order(
                    trial=trial,
                    task=task,
                    task_dir=task_dir,
                    job=job.spec,
                    agent=job.spec.agents[trial.agent_index],
                    work_dir=directory,
                    secrets=keys.values,
                    keys_are_the_jobs=keys.are_the_jobs,
                    keys_may_enter=keys.may_enter,
                    replay=await self._record_for(job, directory),
                    ends_at=started + timedelta(seconds=limit),
                    save_state_to=await self._final_states.states.place(trial) if self._final_states else None,
                    earlier_state=await self._earlier_state(trial),
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
            log.exception("Unexpected error in a trial")
            result = _unexpected(fault, progress.reached)
        return result.model_copy(update={"usage": progress.usage})

    async def _save_or_explain(
        self, trial: Trial, job: Job, result: Result, directory: Path, secrets: Mapping[str, str]
    ) -> Result:
        """Saves the files. If the worker is stopped meanwhile, the result is recorded without them."""
        try:
            return await self._save(trial, result, directory, secrets)
        except asyncio.CancelledError:
            lost = FileLeftOut(path="*", reason="The worker was stopped while it saved the files.")
            result = recordable(result, secrets.values())
            result = result.model_copy(update={"files_left_out": FilesLeftOut(count=1, examples=(lost,))})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SEC):
                    await self._record(trial, job, result)
            raise

    async def _save(self, trial: Trial, result: Result, directory: Path, secrets: Mapping[str, str]) -> Result:
        prefix = try_prefix(trial.id, trial.try_number)
        kept = await self._saver.save(prefix, directory, tuple(secrets.values()))
        result, left_out = recordable(result, secrets.values()), kept.left_out
        if result.files_left_out is not None:  # what had stayed in the sandbox
            left_out = result.files_left_out.and_also(left_out)
        update = {"files": kept.files, "file_listing": kept.listing, "files_left_out": left_out}
        return result.model_copy(update=update)

    async def _record(self, trial: Trial, job: Job, result: Result) -> None:
        """Repeats until the store takes or refuses the result, so that a restart of the store loses no trial."""
        try:
            await self._patiently(lambda: self._write(trial, job, result))
            await self._forget_state(trial)
        except StaleTry:
            return
        except Exception as fault:
            log.exception("The store could not take a result; recording its outcome only")
            message = f"{result.message} (The rest could not be recorded: {type(fault).__name__}.)".strip()
            with contextlib.suppress(StaleTry):
                await self._patiently(lambda: self._write(trial, job, essential(result, message)))

    async def _earlier_state(self, trial: Trial) -> Path | None:
        """What the agent did in an earlier try that was not graded, from this machine or another one."""
        if self._final_states is None:
            return None
        return await self._final_states.states.find(trial) or await self._final_states.fetch(trial)

    async def _record_for(self, job: Job, directory: Path) -> Path | None:
        """The record that this try replays, brought to this machine."""
        replay, target = job.spec.replay, directory / "replay.jsonl"
        if replay is None:
            return None

        async def fetch() -> None:
            target.unlink(missing_ok=True)
            await fetch_record(self._store.trials, self._blobs, replay, target)

        await self._patiently(fetch, self._limits.blobs_patience_sec)
        return target

    async def _hand_over(self, trial: Trial) -> None:
        if self._final_states is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HAND_OVER_SEC):
                    await self._final_states.send(trial)

    async def _forget_state(self, trial: Trial) -> None:
        """The result is recorded, so a fault here is only logged. A sweep finds what is left."""
        try:
            if self._final_states is not None:
                await self._final_states.states.forget(trial.id)
                await self._final_states.forget(trial)
        except Exception:
            log.exception("A final state could not be removed")

    async def _patiently[T](self, work: Callable[[], Awaitable[T]], patience_sec: float = float("inf")) -> T:
        """Repeats ``work`` while the store or the blob store does not answer."""
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
        if result.outcome is Outcome.ERROR and job.spec.retry.allows(result.cause, trial.tries_made):
            delay = timedelta(seconds=job.spec.retry.delay(trial.tries_made))
            await self._store.trials.try_again(trial.id, trial.try_number, result, delay, self._clock())
        else:
            await self._store.trials.finish(trial.id, trial.try_number, result, self._clock())
            self.reports.live.ended(trial)

    async def _stopped(
        self,
        trial: Trial,
        job: Job,
        directory: Path,
        secrets: Mapping[str, str],
        progress: TrialProgress,
        why: Stop,
    ) -> None:
        """Gives the trial back or records the cancellation. Shielded, so that a second cancellation cannot stop it."""
        with contextlib.suppress(StaleTry, NotFound):
            if why is Stop.LEAVING:
                await asyncio.shield(self._hand_over(trial))
                await asyncio.shield(self._store.trials.give_back(trial.id, trial.try_number, self._clock()))
            elif why is Stop.CANCELLED:
                message = "The trial was cancelled while it ran."
                result = Result(outcome=Outcome.CANCELLED, message=message, usage=progress.usage)
                result = await asyncio.shield(self._save(trial, result, directory, secrets))
                await asyncio.shield(self._record(trial, job, result))

    async def _task(self, digest: str) -> Task:
        """Cached: the task of a digest never changes, and a job asks for each of its tasks many times."""
        if (task := self._tasks.get(digest)) is None:
            task = await self._store.tasks.get(digest)
            self._tasks.put(digest, task)
        return task

    async def _job(self, job_id: int) -> Job:
        if (job := self._jobs.get(job_id)) is None:
            job = await self._store.jobs.get(job_id)
            self._jobs.put(job_id, job)
        return job


def _overdue(limit: float, reached: Phase, elapsed: float) -> Result:
    """The cause follows the phase, so that only a sandbox that never got ready is tried again."""
    message = f"The whole trial took longer than its limit of {limit:g} s; it had reached the phase {reached}."
    return Result(outcome=Outcome.ERROR, cause=blamed(reached), message=message, seconds=elapsed)


def _faulty(fault: SeatrialError, cause: Cause) -> Result:
    failure = Failure(type=type(fault).__name__, message=str(fault))
    return Result(outcome=Outcome.ERROR, cause=cause, message=str(fault), failure=failure)


def _unexpected(fault: Exception, reached: Phase) -> Result:
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
