"""The store in memory: the ports' behaviour in its plainest form, for tests of everything above the store.

Passes the same contract suite as the SQL store. It never waits, so nothing can come between the steps of a method.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Self

from seatrial.domain import chronicle
from seatrial.domain.event import Event, NewEvent
from seatrial.domain.isolation import Turn, turn
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.result import Attempt, Result
from seatrial.domain.task import Dataset, Task, TaskRef
from seatrial.domain.trial import (
    CancelAsked,
    Claimed,
    Ended,
    GivenBack,
    LeaseRenewed,
    NewTrial,
    Released,
    Retried,
    Trial,
    TrialEvent,
    TrialState,
    TryAgain,
    WorkerLost,
    transition,
)
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import (
    Heartbeat,
    JobFilter,
    JobTotals,
    Once,
    Page,
    PhaseEntry,
    RenewalReport,
    Tally,
    TrialFilter,
    TrialRow,
    TrialSummary,
    WorkerRow,
)
from seatrial.testing.memory_service import MemoryOutput, MemoryOverview, MemoryTokens


class MemoryTasks:
    """Tasks and datasets."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[Task, datetime]] = {}
        self._datasets: dict[str, Dataset] = {}

    async def save_task(self, task: Task, now: datetime) -> None:
        kept, _ = self._tasks.get(task.digest, (task, now))
        self._tasks[task.digest] = (kept, now)

    async def task(self, digest: str) -> Task:
        if digest not in self._tasks:
            raise NotFound(f"There is no task {digest}.")
        return self._tasks[digest][0]

    async def tasks(self, digests: Sequence[str]) -> list[Task]:
        return [await self.task(digest) for digest in digests]

    async def task_page(self, after: TaskRef | None, limit: int) -> list[Task]:
        found = sorted((task for task, _ in self._tasks.values()), key=lambda task: (task.name, task.digest))
        if after is not None:
            found = [task for task in found if (task.name, task.digest) > (after.name, after.digest)]
        return found[:limit]

    async def find_tasks(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        found = [(task, used) for task, used in self._tasks.values() if name in (None, task.name)]
        found.sort(key=lambda pair: (-pair[1].timestamp(), pair[0].name, pair[0].digest))
        return [task for task, _ in found[:limit]]

    async def delete_task(self, digest: str) -> None:
        await self.task(digest)
        for dataset in self._datasets.values():
            if any(task.digest == digest for task in dataset.tasks):
                raise Conflict(f"Dataset {dataset.id} holds this task.")
        if (job_id := self._job_that_needs(digest)) is not None:
            raise Conflict(f"Job {job_id} has trials of this task left to do.")
        del self._tasks[digest]

    def _job_that_needs(self, digest: str) -> int | None:
        raise NotImplementedError

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        kept = dataset.model_copy(update={"created_at": dataset.created_at or now})
        there = self._datasets.setdefault(kept.id, kept)
        if there.model_copy(update={"created_at": kept.created_at}) != kept:
            raise Conflict(f"Dataset {dataset.id} exists with other content.")
        return there

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        for dataset in reversed(self._datasets.values()):
            if dataset.name == name and version in (None, dataset.version):
                return dataset
        raise NotFound(f"There is no dataset {name}.")

    async def datasets(self) -> list[Dataset]:
        return list(reversed(self._datasets.values()))


class MemoryEvents:
    """The event log, and the jobs that it tells of."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._events: list[Event] = []
        self._last_seq = 0

    async def append(self, events: Sequence[NewEvent], now: datetime) -> None:
        if any(event.job_id not in self._jobs for event in events):
            raise NotFound("An event tells of a job that does not exist.")
        for event in events:
            self._tell(event, now)

    async def events(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        wanted = (
            event
            for event in self._events
            if event.seq > after and job_id in (None, event.job_id) and trial_id in (None, event.trial_id)
        )
        return list(wanted)[:limit]

    async def last_event(self) -> int:
        return self._last_seq

    def _tell(self, event: NewEvent, now: datetime) -> None:
        self._last_seq += 1
        self._events.append(Event(seq=self._last_seq, at=now, **event.model_dump(mode="json")))


class MemoryWorkers:
    def __init__(self) -> None:
        self._workers: dict[str, WorkerRow] = {}

    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None:
        self._workers[heartbeat.worker] = WorkerRow(seen_at=now, **heartbeat.model_dump())

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        rows = sorted(self._workers.values(), key=lambda row: row.worker)
        return [row for row in rows if seen_since is None or row.seen_at >= seen_since]

    async def forget_worker(self, worker: str) -> None:
        self._workers.pop(worker, None)


class MemoryTrials(MemoryEvents):
    """Jobs and trials; every change goes through ``transition``."""

    def __init__(self) -> None:
        super().__init__()
        self._trials: dict[int, Trial] = {}
        self._attempts: dict[int, list[Attempt]] = {}
        self._served_last = 0
        self._keys: dict[int, str] = {}
        self._creations: dict[str, tuple[str, int]] = {}
        self._last_job = 0
        self._last_trial = 0

    async def create_job(
        self,
        spec: JobSpec,
        trials: Sequence[NewTrial],
        now: datetime,
        *,
        hold: bool = False,
        keys: str | None = None,
        once: Once | None = None,
    ) -> Job:
        if once is not None and once.key in self._creations:
            fingerprint, job_id = self._creations[once.key]
            if fingerprint != once.fingerprint:
                raise Conflict("This idempotency key was used for another request.")
            return self._jobs[job_id]
        self._last_job += 1
        job = Job(id=self._last_job, spec=spec, created_at=now)
        self._jobs[job.id] = job
        for planned in trials:
            self._last_trial += 1
            state = TrialState.HELD if hold else TrialState.QUEUED
            trial = Trial(id=self._last_trial, job_id=job.id, created_at=now, state=state, **dict(planned))
            self._trials[trial.id] = trial
            self._attempts[trial.id] = []
        if keys is not None:
            self._keys[job.id] = keys
        if once is not None:
            self._creations[once.key] = (once.fingerprint, job.id)
        self._tell(chronicle.job_created(job, len(trials)), now)
        self._end_job_if_done(job.id, now)
        return self._jobs[job.id]

    async def job(self, job_id: int) -> Job:
        if job_id not in self._jobs:
            raise NotFound(f"There is no job {job_id}.")
        return self._jobs[job_id]

    async def jobs(self, page: Page, chosen: JobFilter | None = None) -> list[Job]:
        newest_first = [job for job in reversed(self._jobs.values()) if self._admits(chosen or JobFilter(), job)]
        below = [job for job in newest_first if page.before is None or job.id < page.before]
        return below[page.skip : page.skip + page.limit]

    async def count_jobs(self, chosen: JobFilter) -> int:
        return sum(self._admits(chosen, job) for job in self._jobs.values())

    async def totals(self, job_ids: Sequence[int]) -> dict[int, JobTotals]:
        return {job_id: self._total(job_id) for job_id in job_ids}

    async def tallies(self, job_ids: Sequence[int]) -> dict[int, list[Tally]]:
        found: dict[int, list[Tally]] = {}
        for job_id in job_ids:
            ways = Counter((t.task.digest, t.outcome, t.cause) for t in self._of_job(job_id))
            found[job_id] = [
                Tally(digest=digest, outcome=outcome, cause=cause, trials=times)
                for (digest, outcome, cause), times in sorted(ways.items(), key=str)
            ]
        return found

    async def save_job_keys(self, job_id: int, keys: str) -> None:
        if (await self.job(job_id)).ended_at is not None:
            raise Conflict(f"Job {job_id} has ended.")
        self._keys[job_id] = keys

    async def job_keys(self, job_id: int) -> str | None:
        return self._keys.get(job_id)

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        return {job_id: self._count(job_id) for job_id in job_ids}

    async def cancel_job(self, job_id: int, now: datetime) -> int:
        job = await self.job(job_id)
        asked = [
            trial
            for trial in self._of_job(job_id)
            if trial.state is not TrialState.ENDED and not trial.cancel_requested
        ]
        if not asked:
            return 0
        self._jobs[job_id] = job.model_copy(update={"cancelled_at": job.cancelled_at or now})
        self._tell(chronicle.job_cancelled(job_id, len(asked)), now)
        for trial in asked:
            after = self._change(trial, CancelAsked(), now)
            if after.state is TrialState.ENDED:
                self._tell(chronicle.attempt_closed(after, None), now)
        self._end_job_if_done(job_id, now)
        return len(asked)

    async def cancel_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        trials = [self._trial(trial_id) for trial_id in sorted(set(trial_ids))]
        asked = [trial for trial in trials if trial.state is not TrialState.ENDED and not trial.cancel_requested]
        for trial in asked:
            after = self._change(trial, CancelAsked(), now)
            if after.state is TrialState.ENDED:
                self._tell(chronicle.attempt_closed(after, None), now)
        for job_id in sorted({trial.job_id for trial in trials}):
            self._end_job_if_done(job_id, now)
        return len(asked)

    async def release_trials(self, trial_ids: Sequence[int], now: datetime, *, limit_sec: float | None = None) -> int:
        trials = [self._trial(trial_id) for trial_id in sorted(set(trial_ids))]
        held = [trial for trial in trials if trial.state is TrialState.HELD]
        for trial in held:
            self._tell(chronicle.trial_released(self._change(trial, Released(limit_sec=limit_sec), now)), now)
        return len(held)

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> int:
        trials = [self._trial(trial_id) for trial_id in sorted(set(trial_ids))]
        ended = [trial for trial in trials if trial.state is TrialState.ENDED]
        for trial in ended:
            self._tell(chronicle.trial_retried(self._change(trial, Retried(hold=hold), now)), now)
            job = self._jobs[trial.job_id]
            self._jobs[job.id] = job.model_copy(update={"cancelled_at": None, "ended_at": None})
        return len(ended)

    async def delete_job(self, job_id: int) -> None:
        if (await self.job(job_id)).ended_at is None:
            raise Conflict(f"Job {job_id} has trials left to do.")
        for trial in list(self._of_job(job_id)):
            del self._trials[trial.id], self._attempts[trial.id]
        self._events = [event for event in self._events if event.job_id != job_id]
        del self._jobs[job_id]

    async def claim(
        self, worker: str, lease: timedelta, limit: int, now: datetime, job_id: int | None = None
    ) -> list[Trial]:
        allowed = self._turn(worker, job_id, now)
        claimed: list[Trial] = []
        if allowed in (Turn.COMPANY, Turn.COMPANY_FIRST):
            claimed = self._deal(Claimed(worker=worker, lease=lease), limit, now, job_id)
        if not claimed and allowed in (Turn.COMPANY_FIRST, Turn.SUSPECT):
            claimed = self._deal(Claimed(worker=worker, lease=lease), min(limit, 1), now, job_id, suspected=True)
        for trial in claimed:
            self._tell(chronicle.trial_claimed(trial), now)
        if claimed and job_id is None:
            self._served_last = claimed[-1].job_id
        return claimed

    def _turn(self, worker: str, job_id: int | None, now: datetime) -> Turn:
        open_trials = [trial for trial in self._trials.values() if trial.state is not TrialState.ENDED]
        suspects = [
            trial
            for trial in open_trials
            if trial.suspected
            and (trial.not_before is None or trial.not_before <= now)
            and (job_id in (None, trial.job_id) or trial.worker == worker)
        ]
        holds = sum(trial.state is TrialState.RUNNING and trial.worker == worker for trial in open_trials)
        return turn(worker, holds, suspects, now)

    def _deal(
        self, event: Claimed, limit: int, now: datetime, job_id: int | None, *, suspected: bool = False
    ) -> list[Trial]:
        claimed: list[Trial] = []
        jobs = [job for job in self._by_turns() if job_id in (None, job.id)]
        waiting = {job.id: self._ready(job, now, suspected) for job in jobs}
        while len(claimed) < limit and any(waiting.values()):
            for line in waiting.values():
                if line and len(claimed) < limit:
                    trial = self._change(line.pop(0), event, now)
                    self._attempts[trial.id].append(
                        Attempt(trial_id=trial.id, number=trial.attempt, worker=event.worker, started_at=now)
                    )
                    claimed.append(trial)
        return claimed

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        kept = [trial for trial in self._current(held) if trial.worker == worker]
        for trial in kept:
            self._change(trial, LeaseRenewed(attempt=trial.attempt, lease=lease), now)
        lost = frozenset(held) - {trial.id for trial in kept}
        return RenewalReport(lost=lost, cancel=frozenset(trial.id for trial in kept if trial.cancel_requested))

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        running = (trial for trial in self._trials.values() if trial.state is TrialState.RUNNING)
        return frozenset(trial.id for trial in running if trial.worker == worker and trial.cancel_requested)

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        for entry in entries:
            for trial in self._current({entry.trial_id: entry.attempt}):
                self._trials[trial.id] = trial.model_copy(update={"phase": entry.phase})
                fact = chronicle.phase_entered(entry.job_id, trial.id, entry.attempt, entry.phase, entry.step)
                self._tell(fact, entry.at)

    async def finish(self, trial_id: int, attempt: int, result: Result, now: datetime) -> Trial:
        event = Ended(attempt=attempt, outcome=result.outcome, cause=result.cause)
        return self._close(trial_id, event, result, now)

    async def try_again(self, trial_id: int, attempt: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        return self._close(trial_id, TryAgain(attempt=attempt, delay=delay), result, now)

    async def lose_worker(self, trial_id: int, attempt: int, result: Result, last: bool, now: datetime) -> Trial:
        event = WorkerLost(attempt=attempt, shared=self._was_shared(trial_id, attempt), last=last)
        return self._close(trial_id, event, result, now)

    def _was_shared(self, trial_id: int, attempt: int) -> bool:
        mine = next((one for one in self._attempts.get(trial_id, []) if one.number == attempt), None)
        others = (one for number, tries in self._attempts.items() if number != trial_id for one in tries)
        return mine is not None and any(
            one.worker == mine.worker and (one.ended_at is None or one.ended_at > mine.started_at) for one in others
        )

    async def give_back(self, trial_id: int, attempt: int, now: datetime) -> Trial:
        return self._close(trial_id, GivenBack(attempt=attempt), None, now)

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        late = [
            (trial.lease_until, trial.id)
            for trial in self._trials.values()
            if trial.lease_until is not None and trial.lease_until < now
        ]
        return [self._trials[trial_id] for _, trial_id in sorted(late)[:limit]]

    async def trial(self, trial_id: int) -> TrialRow:
        return TrialRow(trial=self._trial(trial_id), result=self._last_result(trial_id))

    async def trials(self, chosen: TrialFilter) -> AsyncIterator[TrialRow]:
        for trial in self._chosen(chosen):
            yield TrialRow(trial=trial, result=self._last_result(trial.id))

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        newest_first = reversed(self._chosen(chosen))
        below = [trial for trial in newest_first if page.before is None or trial.id < page.before]
        rows = below[page.skip : page.skip + page.limit]
        return [_summary(trial, self._last_result(trial.id)) for trial in rows]

    async def attempts(self, trial_id: int) -> list[Attempt]:
        self._trial(trial_id)
        return list(self._attempts[trial_id])

    def _trial(self, trial_id: int) -> Trial:
        if trial_id not in self._trials:
            raise NotFound(f"There is no trial {trial_id}.")
        return self._trials[trial_id]

    def _change(self, trial: Trial, event: TrialEvent, now: datetime) -> Trial:
        self._trials[trial.id] = transition(trial, event, now)
        return self._trials[trial.id]

    def _close(self, trial_id: int, event: TrialEvent, result: Result | None, now: datetime) -> Trial:
        after = self._change(self._trial(trial_id), event, now)
        attempt = self._attempts[trial_id][-1]
        self._attempts[trial_id][-1] = attempt.model_copy(update={"ended_at": now, "result": result})
        self._tell(chronicle.attempt_closed(after, result), now)
        if after.state is TrialState.ENDED:
            self._end_job_if_done(after.job_id, now)
        return after

    def _end_job_if_done(self, job_id: int, now: datetime) -> None:
        job = self._jobs[job_id]
        if job.ended_at is None and all(trial.state is TrialState.ENDED for trial in self._of_job(job_id)):
            self._jobs[job_id] = job.model_copy(update={"ended_at": now})
            self._keys.pop(job_id, None)
            self._tell(chronicle.job_ended(job_id), now)

    def _by_turns(self) -> list[Job]:
        """Open jobs; the one after the job that was served last comes first."""
        return sorted(self._jobs.values(), key=lambda job: (job.id <= self._served_last, job.id))

    def _ready(self, job: Job, now: datetime, suspected: bool) -> list[Trial]:
        trials = list(self._of_job(job.id))
        queued = [t for t in trials if t.state is TrialState.QUEUED and t.suspected is suspected]
        ready = [t for t in queued if t.not_before is None or t.not_before <= now]
        if job.spec.concurrency is None:
            return ready
        running = sum(trial.state is TrialState.RUNNING for trial in trials)
        return ready[: max(job.spec.concurrency - running, 0)]

    def _current(self, held: dict[int, int]) -> list[Trial]:
        found = (self._trials.get(trial_id) for trial_id in held)
        return [t for t in found if t and t.state is TrialState.RUNNING and t.attempt == held[t.id]]

    def _of_job(self, job_id: int) -> Iterable[Trial]:
        return (trial for trial in self._trials.values() if trial.job_id == job_id)

    def _chosen(self, chosen: TrialFilter) -> list[Trial]:
        return [
            trial
            for trial in self._trials.values()
            if chosen.job_id in (None, trial.job_id)
            and chosen.task in (None, trial.task.name)
            and chosen.agent in (None, trial.agent)
            and chosen.model in (None, trial.model)
            and (not chosen.causes or trial.cause in chosen.causes)
            and (not chosen.states or trial.state in chosen.states)
            and (not chosen.outcomes or trial.outcome in chosen.outcomes)
        ]

    def _last_result(self, trial_id: int) -> Result | None:
        results = [attempt.result for attempt in self._attempts[trial_id] if attempt.result is not None]
        return results[-1] if results else None

    def _admits(self, chosen: JobFilter, job: Job) -> bool:
        trials = list(self._of_job(job.id))
        counts = self._count(job.id)
        moves = counts.queued + counts.running > 0
        waits = counts.held > 0 and not moves
        return (
            chosen.status in (None, counts.status)
            and (chosen.waits is None or (waits if chosen.waits else moves))
            and chosen.graded in (None, counts.passed + counts.failed > 0)
            and chosen.origin in (None, job.spec.origin)
            and (chosen.name is None or chosen.name.lower() in job.spec.name.lower())
            and chosen.dataset in (None, job.spec.dataset)
            and (chosen.task is None or any(trial.task.name == chosen.task for trial in trials))
            and (chosen.agent is None or any(trial.agent == chosen.agent for trial in trials))
            and (chosen.model is None or any(trial.model == chosen.model for trial in trials))
        )

    def _total(self, job_id: int) -> JobTotals:
        trials = list(self._of_job(job_id))
        results = [result for trial in trials if (result := self._last_result(trial.id)) is not None]
        costs = [result.usage.cost_usd for result in results if result.usage.cost_usd is not None]
        return JobTotals(
            seconds=sum(result.seconds for result in results),
            input_tokens=sum(result.usage.input_tokens or 0 for result in results),
            output_tokens=sum(result.usage.output_tokens or 0 for result in results),
            cost_usd=sum(costs) if costs else None,
            started_at=min((trial.started_at for trial in trials if trial.started_at), default=None),
        )

    def _job_that_needs(self, digest: str) -> int | None:
        unfinished = (trial for trial in self._trials.values() if trial.state is not TrialState.ENDED)
        return next((trial.job_id for trial in unfinished if trial.task.digest == digest), None)

    def _count(self, job_id: int) -> JobCounts:
        tally: dict[str, int] = {}
        for trial in self._of_job(job_id):
            key = trial.outcome if trial.outcome is not None else trial.state
            tally[key] = tally.get(key, 0) + 1
        return JobCounts(**tally)


class MemoryStore(MemoryTrials, MemoryTasks, MemoryOutput, MemoryOverview, MemoryTokens, MemoryWorkers):
    """All ports of the store; gone with the process."""

    def __init__(self) -> None:
        MemoryTasks.__init__(self)
        MemoryTrials.__init__(self)
        MemoryOutput.__init__(self)
        MemoryTokens.__init__(self)
        MemoryWorkers.__init__(self)
        self._install_id = secrets.token_hex(8)

    async def install_id(self) -> str:
        return self._install_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass


def _summary(trial: Trial, result: Result | None) -> TrialSummary:
    if result is None:
        return TrialSummary(trial=trial)
    return TrialSummary(
        trial=trial,
        reward=result.reward,
        marks=result.marks,
        seconds=result.seconds,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost_usd=result.usage.cost_usd,
    )
