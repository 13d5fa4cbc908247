"""Claims in memory, until the end of a try."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from seatrial.domain import event_log
from seatrial.domain.isolation import MayClaim, may_claim
from seatrial.domain.job import Job
from seatrial.domain.result import Result, Try
from seatrial.domain.trial import (
    Claimed,
    Ended,
    GivenBack,
    LeaseRenewed,
    Trial,
    TrialEvent,
    TrialState,
    TryAgain,
    WorkerLost,
)
from seatrial.ports.seal import SEPARATOR
from seatrial.ports.store import PhaseEntry, RenewalReport
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryClaims(MemoryRecords):
    def __init__(self) -> None:
        super().__init__()
        self._served_last = 0

    async def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None = None,
        seal: str | None = None,
    ) -> list[Trial]:
        allowed = self._turn(worker, job_id, now)
        event = Claimed(worker=worker, lease=lease)
        jobs = [job for job in self._by_turns() if job_id in (None, job.id) and self._can_open(job, seal)]
        claimed: list[Trial] = []
        if allowed in (MayClaim.UNSUSPECTED, MayClaim.UNSUSPECTED_FIRST):
            claimed = self._deal(event, limit, now, jobs)
        if not claimed and allowed in (MayClaim.UNSUSPECTED_FIRST, MayClaim.SUSPECT):
            claimed = self._deal(event, min(limit, 1), now, jobs, suspected=True)
        for trial in claimed:
            self._append_event(event_log.trial_claimed(trial), now)
        if claimed and job_id is None:
            self._served_last = claimed[-1].job_id
        return claimed

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        kept = [trial for trial in self._current(held) if trial.worker == worker]
        for trial in kept:
            self._change(trial, LeaseRenewed(try_number=trial.try_number, lease=lease), now)
        lost = frozenset(held) - {trial.id for trial in kept}
        return RenewalReport(lost=lost, cancel=frozenset(trial.id for trial in kept if trial.cancel_requested))

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        running = (trial for trial in self._trials.values() if trial.state is TrialState.RUNNING)
        return frozenset(trial.id for trial in running if trial.worker == worker and trial.cancel_requested)

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        for entry in entries:
            for trial in self._current({entry.trial_id: entry.try_number}):
                self._trials[trial.id] = trial.model_copy(update={"phase": entry.phase})
                fact = event_log.phase_entered(entry.job_id, trial.id, entry.try_number, entry.phase, entry.step)
                self._append_event(fact, entry.at)

    async def finish(self, trial_id: int, try_number: int, result: Result, now: datetime) -> Trial:
        event = Ended(try_number=try_number, outcome=result.outcome, cause=result.cause)
        return self._close(trial_id, event, result, now)

    async def try_again(self, trial_id: int, try_number: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        return self._close(trial_id, TryAgain(try_number=try_number, delay=delay), result, now)

    async def lose_worker(self, trial_id: int, try_number: int, result: Result, last: bool, now: datetime) -> Trial:
        event = WorkerLost(try_number=try_number, shared=self._was_shared(trial_id, try_number), last=last)
        return self._close(trial_id, event, result, now)

    async def give_back(self, trial_id: int, try_number: int, now: datetime) -> Trial:
        return self._close(trial_id, GivenBack(try_number=try_number), None, now)

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        late = [
            (trial.lease_until, trial.id)
            for trial in self._trials.values()
            if trial.lease_until is not None and trial.lease_until < now
        ]
        return [self._trials[trial_id] for _, trial_id in sorted(late)[:limit]]

    def _turn(self, worker: str, job_id: int | None, now: datetime) -> MayClaim:
        open_trials = [trial for trial in self._trials.values() if trial.state is not TrialState.ENDED]
        suspects = [
            trial
            for trial in open_trials
            if trial.suspected
            and (trial.not_before is None or trial.not_before <= now)
            and (job_id in (None, trial.job_id) or trial.worker == worker)
        ]
        holds = sum(trial.state is TrialState.RUNNING and trial.worker == worker for trial in open_trials)
        return may_claim(worker, holds, suspects, now)

    def _can_open(self, job: Job, seal: str | None) -> bool:
        sealed_with, known, _ = (self._keys.get(job.id) or "").partition(SEPARATOR)
        return seal is None or not known or sealed_with == seal

    def _deal(
        self, event: Claimed, limit: int, now: datetime, jobs: list[Job], *, suspected: bool = False
    ) -> list[Trial]:
        claimed: list[Trial] = []
        waiting = {job.id: self._ready(job, now, suspected) for job in jobs}
        while len(claimed) < limit and any(waiting.values()):
            for line in waiting.values():
                if line and len(claimed) < limit:
                    trial = self._change(line.pop(0), event, now)
                    self._tries[trial.id].append(
                        Try(trial_id=trial.id, number=trial.try_number, worker=event.worker, started_at=now)
                    )
                    claimed.append(trial)
        return claimed

    def _by_turns(self) -> list[Job]:
        """All jobs; the job after the one served last comes first."""
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
        return [t for t in found if t and t.state is TrialState.RUNNING and t.try_number == held[t.id]]

    def _was_shared(self, trial_id: int, try_number: int) -> bool:
        mine = next((one for one in self._tries.get(trial_id, []) if one.number == try_number), None)
        others = (one for number, tries in self._tries.items() if number != trial_id for one in tries)
        return mine is not None and any(
            one.worker == mine.worker and (one.ended_at is None or one.ended_at > mine.started_at) for one in others
        )

    def _close(self, trial_id: int, event: TrialEvent, result: Result | None, now: datetime) -> Trial:
        after = self._change(self._trial(trial_id), event, now)
        a_try = self._tries[trial_id][-1]
        self._tries[trial_id][-1] = a_try.model_copy(update={"ended_at": now, "result": result})
        self._append_event(event_log.try_closed(after, result), now)
        if after.state is TrialState.ENDED:
            self._end_job_if_done(after.job_id, now)
        return after
