"""Jobs, trials and events in memory, and operations that several parts of the store share.

Every change of a trial goes through ``transition``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from seatrial.domain import event_log
from seatrial.domain.event import Event, NewEvent
from seatrial.domain.job import Job, JobCounts, StateCounts
from seatrial.domain.result import Result, Spent, Try
from seatrial.domain.trial import Trial, TrialEvent, TrialState, transition
from seatrial.errors import NotFound


class MemoryRecords:
    """State that the parts of the store share."""

    def __init__(self) -> None:
        super().__init__()
        self._jobs: dict[int, Job] = {}
        self._trials: dict[int, Trial] = {}
        self._tries: dict[int, list[Try]] = {}
        self._keys: dict[int, str] = {}
        self._events: list[Event] = []
        self._last_seq = 0

    def _trial(self, trial_id: int) -> Trial:
        if trial_id not in self._trials:
            raise NotFound(f"There is no trial {trial_id}.")
        return self._trials[trial_id]

    def _of_job(self, job_id: int) -> Iterable[Trial]:
        return (trial for trial in self._trials.values() if trial.job_id == job_id)

    def _last_result(self, trial_id: int) -> Result | None:
        results = [a_try.result for a_try in self._tries[trial_id] if a_try.result is not None]
        return results[-1] if results else None

    def _count(self, job_id: int) -> JobCounts:
        trials = list(self._of_job(job_id))
        planned, added = (
            Counter(str(trial.outcome or trial.state) for trial in trials if trial.added is which)
            for which in (False, True)
        )
        return JobCounts(**planned, added=StateCounts(**added))

    def _spent(self, trial_id: int) -> Spent:
        spent = Spent()
        for a_try in self._tries[trial_id]:
            spent = spent.and_also(a_try.result) if a_try.result is not None else spent
        return spent

    def _change(self, trial: Trial, event: TrialEvent, now: datetime) -> Trial:
        self._trials[trial.id] = transition(trial, event, now)
        return self._trials[trial.id]

    def _end_job_if_done(self, job_id: int, now: datetime) -> None:
        job = self._jobs[job_id]
        if job.ended_at is None and all(trial.state is TrialState.ENDED for trial in self._of_job(job_id)):
            self._jobs[job_id] = job.model_copy(update={"ended_at": now})
            self._keys.pop(job_id, None)
            self._append_event(event_log.job_ended(job_id), now)

    def _append_event(self, event: NewEvent, now: datetime) -> None:
        self._last_seq += 1
        self._events.append(Event(seq=self._last_seq, at=now, **event.model_dump(mode="json")))
