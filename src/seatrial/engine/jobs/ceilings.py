"""The operator's limits for one task and one job. 0 means no limit.

They are checked when a job is submitted and again before each try, because the operator may lower them in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.domain.job import JobSpec
from seatrial.domain.task import Task
from seatrial.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Ceilings:
    memory_mb: int = 0
    cpus: float = 0
    storage_mb: int = 0
    trial_sec: float = 0
    """For the sum of a task's own limits, and for the limit that a job asks for a whole trial."""
    trials: int = 0
    attempts: int = 0

    def check_job(self, spec: JobSpec) -> None:
        """Raises ``Unsupported`` with both numbers if a job asks for too much."""
        trials = len(spec.tasks) * len(spec.agents) * spec.attempts
        _refuse_more("The job would have", trials, self.trials, "trials", "attempts", "SEATRIAL_MAX_TRIALS_PER_JOB")
        _refuse_more("The job asks for", spec.attempts, self.attempts, "attempts", "attempts", "SEATRIAL_MAX_ATTEMPTS")
        self.check_limit(spec.trial_limit_sec)

    def check_limit(self, asked_sec: float | None) -> None:
        """Checks the limit that a job or a request asks for a whole trial."""
        field = "trial_limit_sec"
        _refuse_more("The job gives a trial", asked_sec, self.trial_sec, "seconds", field, "SEATRIAL_MAX_TRIAL_SEC")

    def check_task(self, task: Task, stretch: float) -> None:
        """``stretch`` is the job's timeout multiplier."""
        asks, wants = f"Task {task.name} asks for", task.resources
        _refuse_more(asks, wants.memory_mb, self.memory_mb, "MB of memory", "tasks", "SEATRIAL_MAX_MEMORY_MB")
        _refuse_more(asks, wants.cpus, self.cpus, "processors", "tasks", "SEATRIAL_MAX_CPUS")
        _refuse_more(asks, wants.storage_mb, self.storage_mb, "MB of storage", "tasks", "SEATRIAL_MAX_STORAGE_MB")
        limits = (task.agent_timeout_sec, task.verifier_timeout_sec)
        seconds = stretch * sum(max(limit or 0.0, 0.0) for limit in limits) + max(task.build_timeout_sec or 0.0, 0.0)
        _refuse_more(asks, seconds, self.trial_sec, "seconds altogether", "tasks", "SEATRIAL_MAX_TRIAL_SEC")


def _refuse_more(asks: str, wanted: float | None, most: float, unit: str, field: str, setting: str) -> None:
    if not most or wanted is None or wanted <= most:
        return
    raise Unsupported(
        f"{asks} {wanted:,.10g} {unit}; this installation allows {most:,.10g} ({setting}).",
        field=field,
        fix="Ask for less, or have its operator raise the ceiling.",
    )
