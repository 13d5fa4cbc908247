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
from seatrial.domain.link import Link
from seatrial.domain.result import Result, Spent, Try
from seatrial.domain.triage import MarkKind, Note, TriageMark
from seatrial.domain.trial import Trial, TrialEvent, TrialState, transition
from seatrial.errors import NotFound


class MemoryRecords:
    """State that the parts of the store share."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.trials: dict[int, Trial] = {}
        self.tries: dict[int, list[Try]] = {}
        self.sealed_keys: dict[int, str] = {}
        self.events: list[Event] = []
        self.last_seq = 0
        self.marks: dict[tuple[int, MarkKind, str], TriageMark] = {}
        self.notes: dict[int, Note] = {}
        self.links: dict[int, Link] = {}

    def trial(self, trial_id: int) -> Trial:
        if trial_id not in self.trials:
            raise NotFound(f"There is no trial {trial_id}.")
        return self.trials[trial_id]

    def forget_triage(self, job_id: int) -> None:
        """After the trials of the job are gone."""
        self.marks = {key: mark for key, mark in self.marks.items() if mark.trial_id in self.trials}
        self.notes = {key: note for key, note in self.notes.items() if note.trial_id in self.trials}
        self.links = {key: link for key, link in self.links.items() if link.job_id != job_id}

    def of_job(self, job_id: int) -> Iterable[Trial]:
        return (trial for trial in self.trials.values() if trial.job_id == job_id)

    def last_result(self, trial_id: int) -> Result | None:
        results = [a_try.result for a_try in self.tries[trial_id] if a_try.result is not None]
        return results[-1] if results else None

    def count(self, job_id: int) -> JobCounts:
        trials = list(self.of_job(job_id))
        planned, added = (
            Counter(str(trial.outcome or trial.state) for trial in trials if trial.added is which)
            for which in (False, True)
        )
        return JobCounts(**planned, added=StateCounts(**added))

    def spent(self, trial_id: int) -> Spent:
        spent = Spent()
        for a_try in self.tries[trial_id]:
            spent = spent.and_also(a_try.result) if a_try.result is not None else spent
        return spent

    def change(self, trial: Trial, event: TrialEvent, now: datetime) -> Trial:
        self.trials[trial.id] = transition(trial, event, now)
        return self.trials[trial.id]

    def end_job_if_done(self, job_id: int, now: datetime) -> None:
        job = self.jobs[job_id]
        if job.ended_at is None and all(trial.state is TrialState.ENDED for trial in self.of_job(job_id)):
            self.jobs[job_id] = job.model_copy(update={"ended_at": now})
            self.sealed_keys.pop(job_id, None)
            self.append_event(event_log.job_ended(job_id), now)

    def append_event(self, event: NewEvent, now: datetime) -> None:
        self.last_seq += 1
        self.events.append(Event(seq=self.last_seq, at=now, **event.model_dump(mode="json")))
