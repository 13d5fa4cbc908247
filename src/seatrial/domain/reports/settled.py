"""What a job that stops when settled found, saved and guarantees, for its report. Derived, never stored."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.settling import Course, Finding, UntilSettled


class Settled(Frozen):
    """What a job that stops when settled found out, and at which cost."""

    finding: Finding
    a: str
    b: str
    """The two configurations, in the order of the job."""
    better: str | None
    """The one that is better; ``None`` if neither is known to be."""
    difference: float | None
    """A minus B at the last look, mean over the tasks that were run. A job that stops because of a large difference
    overstates it a little."""
    alpha: float
    margin: float
    """In points."""
    looks_made: int
    looks_planned: int
    tasks_run: int
    tasks: int
    trials_run: int
    """Planned trials that ended; further ones may still be running."""
    trials_planned: int
    """With the maximum of attempts."""
    not_needed: int
    """Planned trials that will never run."""
    saving: float
    """Share of the planned trials that are not needed."""
    sentence: str
    guarantee: str


class RunSoFar(Frozen):
    """How much of the plan was run."""

    tasks_run: int
    tasks: int
    trials_run: int
    trials_left: int
    """Trials that exist and have not ended."""
    trials_there: int
    """Planned trials that exist, ended or not."""
    trials_planned: int


def settled(rule: UntilSettled, course: Course, labels: Sequence[str], run: RunSoFar) -> Settled:
    """``labels``: of both configurations."""
    a, b = labels
    finding = course.finding
    if finding is Finding.OPEN and not run.trials_left:
        finding = Finding.NOT_SETTLED  # trials were cancelled, or errors were retried after the job had stopped
    not_needed = run.trials_planned - run.trials_there
    return Settled(
        finding=finding,
        a=a,
        b=b,
        better={Finding.A_BETTER: a, Finding.B_BETTER: b}.get(finding),
        difference=course.difference,
        alpha=rule.alpha,
        margin=rule.margin,
        looks_made=course.looks_made,
        looks_planned=course.looks_planned,
        tasks_run=run.tasks_run,
        tasks=run.tasks,
        trials_run=run.trials_run,
        trials_planned=run.trials_planned,
        not_needed=not_needed,
        saving=not_needed / run.trials_planned if run.trials_planned else 0.0,
        sentence=_sentence(finding, course, a, b, rule),
        guarantee=guarantee(rule),
    )


def guarantee(rule: UntilSettled) -> str:
    """What is controlled, in plain words."""
    share = f"{100 * rule.alpha:g} %"
    return (
        f"If it is chance which of the two does better on a task, at most {share} of such jobs name a winner, over all "
        f"looks together and whenever they stop. If they differ by {rule.margin:g} points or more over tasks like "
        f"these, at most {share} say that they differ by less. Both hold for tasks drawn at random."
    )


def _sentence(finding: Finding, course: Course, a: str, b: str, rule: UntilSettled) -> str:
    points = abs(100 * (course.difference or 0.0))
    match finding:
        case Finding.A_BETTER:
            return f"Settled: {a} is better than {b} ({points:.1f} points at the last look)."
        case Finding.B_BETTER:
            return f"Settled: {b} is better than {a} ({points:.1f} points at the last look)."
        case Finding.WITHIN_MARGIN:
            return f"Settled: {a} and {b} differ by less than {rule.margin:g} points."
        case Finding.NOT_SETTLED:
            return f"Not settled: after all trials it is not known whether {a} or {b} is better."
        case Finding.OPEN:
            return f"Not settled yet: {course.looks_made} of {course.looks_planned} looks made."
