"""Who may claim which trial, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from seatrial.domain import event_log
from seatrial.domain.fleet.isolation import Suspects, may_take, waiting
from seatrial.domain.fleet.packing import EVERYTHING, HOLD, PATIENCE, Offer
from seatrial.domain.job import Job
from seatrial.domain.result import Try
from seatrial.domain.trial import (
    Claimed,
    Trial,
    TrialState,
)
from seatrial.ports.seal import SEPARATOR
from seatrial.testing.memory_store.records import MemoryRecords


@dataclass(slots=True)
class _Wait:
    """A trial that a worker passed over, because it had no room."""

    since: datetime
    worker: str | None = None
    until: datetime | None = None


class MemoryClaims:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._served_last = 0
        self._waits: dict[int, _Wait] = {}

    def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None,
        seal: str | None,
        group: str | None,
        offer: Offer = EVERYTHING,
    ) -> list[Trial]:
        event = Claimed(worker=worker, lease=lease)
        jobs = self._servable(job_id, seal)
        if group is None:
            claimed, offer = self._overdue(event, limit, now, jobs, offer)
            if not self._keeps_room(worker, now, jobs, offer):
                lines = {job.id: self._ready(job, now, None) for job in jobs}
                claimed += self._deal(event, limit - len(claimed), now, lines, offer)
        else:
            chosen = {trial.id for trial in may_take(worker, group, self._suspects(), now)}
            claimed = self._deal(event, limit, now, {job.id: self._ready(job, now, chosen) for job in jobs}, offer)
        for trial in claimed:
            self._waits.pop(trial.id, None)
            self._records.append_event(event_log.trial_claimed(trial), now)
        if claimed and job_id is None and group is None:
            self._served_last = claimed[-1].job_id
        return claimed

    def _late(self, now: datetime, jobs: list[Job], offer: Offer) -> list[Trial]:
        """Trials that waited too long and that the worker can hold, the oldest first."""
        ready = {trial.id: trial for job in jobs for trial in self._ready(job, now, None)}
        late = [number for number, wait in self._waits.items() if wait.since + PATIENCE <= now and number in ready]
        late.sort(key=lambda number: (self._waits[number].since, number))
        return [ready[number] for number in late if offer.may_ever_run(ready[number].needs)]

    def _overdue(
        self, event: Claimed, limit: int, now: datetime, jobs: list[Job], offer: Offer
    ) -> tuple[list[Trial], Offer]:
        claimed: list[Trial] = []
        for trial in self._late(now, jobs, offer) if offer.packing is not None else ():
            if len(claimed) < limit and offer.fits(trial.needs) and self._places(self._records.jobs[trial.job_id]) > 0:
                claimed.append(self._take(trial, event, now))
                offer = offer.after(trial.needs)
        return claimed, offer

    def _keeps_room(self, worker: str, now: datetime, jobs: list[Job], offer: Offer) -> bool:
        for trial in self._late(now, jobs, offer) if offer.packing is not None else ():
            wait = self._waits[trial.id]
            mine = wait.worker in (None, worker) or wait.until is None or wait.until <= now
            if mine and offer.must_keep_room(trial.needs):
                wait.worker, wait.until = worker, now + HOLD
                return True
        return False

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

    def _deal(
        self, event: Claimed, limit: int, now: datetime, lines: dict[int, list[Trial]], offer: Offer
    ) -> list[Trial]:
        claimed: list[Trial] = []
        while len(claimed) < limit and any(lines.values()):
            for job_id, line in lines.items():
                line = self._that_fit(line, offer, now) if self._places(self._records.jobs[job_id]) > 0 else []
                lines[job_id] = line
                if line and len(claimed) < limit:
                    offer = offer.after(line[0].needs)
                    claimed.append(self._take(line.pop(0), event, now))
        return claimed

    def _that_fit(self, line: list[Trial], offer: Offer, now: datetime) -> list[Trial]:
        able = [trial for trial in line if offer.may_ever_run(trial.needs)]
        blocked = [trial for trial in able if not offer.fits(trial.needs)]
        if blocked:
            self._waits.setdefault(blocked[0].id, _Wait(now))
        return [trial for trial in able if offer.fits(trial.needs)]

    def _take(self, queued: Trial, event: Claimed, now: datetime) -> Trial:
        trial = self._records.change(queued, event, now)
        self._records.tries[trial.id].append(
            Try(trial_id=trial.id, number=trial.try_number, worker=event.worker, started_at=now)
        )
        return trial

    def _by_turns(self) -> list[Job]:
        """All jobs; the job after the one served last comes first."""
        return sorted(self._records.jobs.values(), key=lambda job: (job.id <= self._served_last, job.id))

    def _ready(self, job: Job, now: datetime, chosen: set[int] | None) -> list[Trial]:
        """The chosen suspects, or all trials that are not suspected, if the job may start any now."""
        if self._places(job) <= 0:
            return []
        due = (trial for trial in self._records.of_job(job.id) if trial.is_due(now))
        return [trial for trial in due if (not trial.suspected if chosen is None else trial.id in chosen)]

    def _places(self, job: Job) -> float:
        """How many more of its trials may run at once."""
        if job.spec.concurrency is None:
            return inf
        return job.spec.concurrency - sum(t.state is TrialState.RUNNING for t in self._records.of_job(job.id))
