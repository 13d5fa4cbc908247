"""Who may claim which trial, in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

from seatrial.domain import event_log
from seatrial.domain.isolation import MayClaim, may_claim
from seatrial.domain.job import Job
from seatrial.domain.result import Try
from seatrial.domain.trial import (
    Claimed,
    Trial,
    TrialState,
)
from seatrial.ports.seal import SEPARATOR
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryClaims:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._served_last = 0

    def claim(
        self, worker: str, lease: timedelta, limit: int, now: datetime, job_id: int | None, seal: str | None
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
            self._records.append_event(event_log.trial_claimed(trial), now)
        if claimed and job_id is None:
            self._served_last = claimed[-1].job_id
        return claimed

    def _turn(self, worker: str, job_id: int | None, now: datetime) -> MayClaim:
        open_trials = [trial for trial in self._records.trials.values() if trial.state is not TrialState.ENDED]
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
        sealed_with, known, _ = (self._records.sealed_keys.get(job.id) or "").partition(SEPARATOR)
        return seal is None or not known or sealed_with == seal

    def _deal(
        self, event: Claimed, limit: int, now: datetime, jobs: list[Job], *, suspected: bool = False
    ) -> list[Trial]:
        claimed: list[Trial] = []
        waiting = {job.id: self._ready(job, now, suspected) for job in jobs}
        while len(claimed) < limit and any(waiting.values()):
            for line in waiting.values():
                if line and len(claimed) < limit:
                    trial = self._records.change(line.pop(0), event, now)
                    self._records.tries[trial.id].append(
                        Try(trial_id=trial.id, number=trial.try_number, worker=event.worker, started_at=now)
                    )
                    claimed.append(trial)
        return claimed

    def _by_turns(self) -> list[Job]:
        """All jobs; the job after the one served last comes first."""
        return sorted(self._records.jobs.values(), key=lambda job: (job.id <= self._served_last, job.id))

    def _ready(self, job: Job, now: datetime, suspected: bool) -> list[Trial]:
        trials = list(self._records.of_job(job.id))
        queued = [t for t in trials if t.state is TrialState.QUEUED and t.suspected is suspected]
        ready = [t for t in queued if t.not_before is None or t.not_before <= now]
        if job.spec.concurrency is None:
            return ready
        running = sum(trial.state is TrialState.RUNNING for trial in trials)
        return ready[: max(job.spec.concurrency - running, 0)]
