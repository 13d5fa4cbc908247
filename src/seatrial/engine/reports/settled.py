"""Reads from a job's trials whether it is settled. Used by the engine that stops such jobs, and by reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.domain.job import JobSpec
from seatrial.domain.reports.settled import RunSoFar, Settled, settled
from seatrial.domain.reports.settling import Course, UntilSettled, course
from seatrial.domain.trial import Cause, Outcome
from seatrial.ports.store import TrialNumbers


def settled_of(spec: JobSpec, numbers: Iterable[TrialNumbers], labels: Sequence[str]) -> Settled | None:
    """``None`` for a job without this rule."""
    rule = spec.until_settled
    if rule is None or len(labels) != 2:
        return None
    planned = [trial for trial in numbers if not trial.added]
    digests = {task.digest for task in spec.tasks}
    ended = sum(trial.outcome is not None for trial in planned)
    run = RunSoFar(
        tasks_run=len({trial.task.digest for trial in planned if trial.outcome is not None}),
        tasks=len(digests),
        trials_run=ended,
        trials_left=len(planned) - ended,
        trials_there=len(planned),
        trials_planned=2 * len(digests) * spec.attempts,
    )
    return settled(rule, course_of(rule, spec, planned), labels, run)


def course_of(rule: UntilSettled, spec: JobSpec, planned: Iterable[TrialNumbers]) -> Course:
    """``planned``: the trials of the plan, without added attempts."""
    ended = {
        (trial.task.digest, trial.agent_index, trial.attempt): _passed(trial)
        for trial in planned
        if trial.outcome is not None
    }
    return course(rule, [task.digest for task in spec.tasks], spec.attempts, ended)


def _passed(trial: TrialNumbers) -> bool | None:
    """Like the score: an error of the agent is a failure, any other error says nothing."""
    if trial.outcome is Outcome.PASSED:
        return True
    failed = trial.outcome is Outcome.FAILED or (trial.outcome is Outcome.ERROR and trial.cause is Cause.AGENT)
    return False if failed else None
