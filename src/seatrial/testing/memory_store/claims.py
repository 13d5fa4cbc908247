"""Who may claim which trial, in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

from seatrial.domain import event_log
from seatrial.domain.isolation import Suspects, may_take, waiting
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
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None,
        seal: str | None,
        group: str | None,
    ) -> list[Trial]:
        event = Claimed(worker=worker, lease=lease)
        jobs = self._servable(job_id, seal)
        chosen = set[int]()
        if group is not None:
            chosen = {trial.id for trial in may_take(worker, group, self._suspects(), now)}
        lines = {job.id: self._ready(job, now, None if group is None else chosen) for job in jobs}
        claimed = self._deal(event, limit, now, lines)
        for trial in claimed:
            self._records.append_event(event_log.trial_claimed(trial), now)
        if claimed and job_id is None and group is None:
            self._served_last = claimed[-1].job_id
        return claimed

    def suspects(self, now: datetime, job_id: int | None, seal: str | None) -> list[Suspects]:
        suspects = self._suspects()
        every = {trial.id for trial in suspects}
        servable = {job.id for job in self._servable(job_id, seal) if self._ready(job, now, every)}
        return waiting([one for one in suspects if one.state is TrialState.RUNNING or one.job_id in servable], now)

    def _servable(self, job_id: int | None, seal: str | None) -> list[Job]:
        return [job for job in self._by_turns() if job_id in (None, job.id) and self._can_open(job, seal)]

    def _suspects(self) -> list[Trial]:
        trials = self._records.trials.values()
        return [trial for trial in trials if trial.suspected and trial.state is not TrialState.ENDED]

    def _can_open(self, job: Job, seal: str | None) -> bool:
        sealed_with, known, _ = (self._records.sealed_keys.get(job.id) or "").partition(SEPARATOR)
        return seal is None or not known or sealed_with == seal

    def _deal(self, event: Claimed, limit: int, now: datetime, waiting: dict[int, list[Trial]]) -> list[Trial]:
        claimed: list[Trial] = []
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

    def _ready(self, job: Job, now: datetime, chosen: set[int] | None) -> list[Trial]:
        """The chosen suspects, or all trials that are not suspected, that the job may start now."""
        trials = list(self._records.of_job(job.id))
        ready = [t for t in trials if t.is_due(now) and (not t.suspected if chosen is None else t.id in chosen)]
        if job.spec.concurrency is None:
            return ready
        running = sum(trial.state is TrialState.RUNNING for trial in trials)
        return ready[: max(job.spec.concurrency - running, 0)]
