"""The event for each change of a trial. All stores append these, so that their logs are the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from seatrial.domain.event import EventKind, NewEvent
from seatrial.domain.job import Job
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, Phase, Trial, TrialState


def job_created(job: Job, trials: int) -> NewEvent:
    return NewEvent(kind=EventKind.JOB_CREATED, job_id=job.id, data={"name": job.title, "trials": trials})


def job_cancelled(job_id: int, trials: int) -> NewEvent:
    return NewEvent(kind=EventKind.JOB_CANCELLED, job_id=job_id, data={"trials": trials})


def job_ended(job_id: int) -> NewEvent:
    return NewEvent(kind=EventKind.JOB_ENDED, job_id=job_id)


def job_trimmed(job_id: int, trials: int) -> NewEvent:
    return NewEvent(kind=EventKind.JOB_TRIMMED, job_id=job_id, data={"trials": trials})


def trial_claimed(trial: Trial) -> NewEvent:
    return _about(trial, EventKind.TRIAL_CLAIMED, {"worker": trial.worker})


def phase_entered(job_id: int, trial_id: int, try_number: int, phase: Phase, step: str | None) -> NewEvent:
    data = {"phase": phase.value} | ({"step": step} if step else {})
    return NewEvent(kind=EventKind.TRIAL_PHASE, job_id=job_id, trial_id=trial_id, attempt=try_number, data=data)


def try_closed(trial: Trial, result: Result | None) -> NewEvent:
    """The event after a try: the trial ended, or waits for another try."""
    if trial.state is not TrialState.ENDED:
        return _waits(trial, result)
    data: dict[str, Any] = {"outcome": trial.outcome, "cause": trial.cause}
    if result is not None and trial.outcome is not Outcome.CANCELLED:
        data |= {"reward": result.reward, "marks": list(result.marks), **_spent(result)}
    return _about(trial, EventKind.TRIAL_ENDED, data)


def trial_added(trial: Trial) -> NewEvent:
    return _about(trial, EventKind.TRIAL_ADDED, {"reruns": trial.reruns, "repeat": trial.attempt})


def trial_released(trial: Trial) -> NewEvent:
    return _about(trial, EventKind.TRIAL_RELEASED, {})


def trial_retried(trial: Trial) -> NewEvent:
    return _about(trial, EventKind.TRIAL_RETRY, {"why": "asked"})


def _waits(trial: Trial, result: Result | None) -> NewEvent:
    if result is None:
        return _about(trial, EventKind.TRIAL_RETRY, {"why": "given back"})
    data = {"why": "fault", "cause": result.cause, "message": result.message, "not_before": _iso(trial.not_before)}
    return _about(trial, EventKind.TRIAL_RETRY, data | _spent(result))


def _spent(result: Result) -> dict[str, Any]:
    """Time, tokens and money of one try."""
    usage = result.usage.model_dump(exclude_none=True)
    return {"seconds": result.seconds, "usage": usage, "phases": _phases(result)}


def _phases(result: Result) -> dict[str, float]:
    """Seconds by phase, summed over the steps of a multi-step task."""
    seconds: dict[str, float] = {}
    for timing in result.timings:
        seconds[timing.phase] = round(seconds.get(timing.phase, 0.0) + timing.seconds, 3)
    return seconds


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _about(trial: Trial, kind: EventKind, data: dict[str, Any]) -> NewEvent:
    return NewEvent(kind=kind, job_id=trial.job_id, trial_id=trial.id, attempt=trial.try_number, data=data)
