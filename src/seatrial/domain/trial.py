"""A trial, its states, and the function that changes them.

A trial is *held*, *queued*, *running* or *ended*. It is attempt k of n at its task. A *try* is one execution of it:
``try_number`` counts its claims, and every later write carries that number, so that a worker that was presumed dead
cannot overwrite its successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.frozen import Frozen
from seatrial.domain.task import TaskRef
from seatrial.errors import Conflict, StaleTry

SHARED_LOSSES_ALLOWED = 2
"""After this many shared worker losses a trial is suspected; see ``domain/fleet/isolation.py``."""
OUTSIDE_LOSSES_ALLOWED = 5
"""A trial may lose this many workers that were killed from outside; later losses count as an unknown death."""
SHARING = "+"
"""In the name of a group of suspects that has more than one."""


class TrialState(StrEnum):
    HELD = "held"
    """Planned, but not run until it is released."""
    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """No valid reward. Never scored as a failure; the cause names the source."""
    CANCELLED = "cancelled"

    @property
    def graded(self) -> bool:
        return self in (Outcome.PASSED, Outcome.FAILED)


class Cause(StrEnum):
    """Why a trial ended in an error."""

    VERIFIER = "verifier"
    LLM = "llm"
    SANDBOX = "sandbox"
    IMAGE = "image"
    WORKER_LOST = "worker_lost"
    AGENT = "agent"
    REPLAY = "replay"
    """The agent asked its model something that the replayed trial did not ask."""


class Mark(StrEnum):
    """Added to a result; does not change its reward."""

    AGENT_TIMEOUT = "agent_timeout"
    AGENT_ERROR = "agent_error"
    OVER_BUDGET = "over_budget"
    MEMORY_KILL = "memory_kill"
    THROTTLED = "throttled"
    """Its model calls waited for their turn, because the provider limits the pace."""
    KEY_IN_SANDBOX = "key_in_sandbox"
    """A provider key was in its sandbox, because the gate for model calls had no door there."""
    REPLAYED = "replayed"
    """Its model calls were answered from the record of another trial."""
    LIMITS_NOT_ENFORCED = "limits_not_enforced"
    PRIVILEGED = "privileged"
    SUSPECT_PATH = "suspect_path"
    """Integrity: the agent changed programs on the verifier's PATH."""
    SUSPECT_PYTHON = "suspect_python"
    """Integrity: the agent changed Python start-up files."""
    SUSPECT_SHELL = "suspect_shell"
    """Integrity: the agent changed shell start-up files."""


class Phase(StrEnum):
    """Progress of a running trial."""

    PREPARING = "preparing"
    BUILD = "build"
    START = "start"
    AGENT_SETUP = "agent_setup"
    AGENT = "agent"
    VERIFY = "verify"


_BLAMED: Mapping[Phase, Cause] = {
    Phase.PREPARING: Cause.SANDBOX,
    Phase.BUILD: Cause.IMAGE,
    Phase.START: Cause.SANDBOX,
    Phase.AGENT_SETUP: Cause.AGENT,
    Phase.AGENT: Cause.AGENT,
    Phase.VERIFY: Cause.VERIFIER,
}


def blamed(phase: Phase) -> Cause:
    """The default cause for an error in this phase."""
    return _BLAMED[phase]


class NewTrial(Frozen):
    """A planned trial that has no id yet."""

    task: TaskRef
    agent_index: int
    """Index into the agents of the job's spec."""
    agent: str
    model: str | None
    attempt: int
    """Which attempt at the task: 1 … attempts of the job; above that it was added."""
    reruns: int | None = None
    """The planned trial that an added attempt runs again."""
    needs: Needs = Needs()
    """What it needs of a worker."""


class Trial(NewTrial):
    """A trial of a job."""

    id: int
    job_id: int
    state: TrialState = TrialState.QUEUED
    outcome: Outcome | None = None
    cause: Cause | None = None
    try_number: int = 0
    """Number of claims so far; every write of the current claim carries it."""
    tries_base: int = 0
    """Claims that do not count as tries: those before the last ``retry``, those given back by a stopping worker, and
    losses that say nothing about this trial."""
    shared_losses: int = 0
    """Workers that were lost while they held this trial and others, and may have been lost because of one of them. A
    crash counts twice."""
    outside_losses: int = 0
    """Workers that were killed from outside, or lost with their machine, while they held this trial."""
    search_group: str | None = None
    """The suspects with which it may share a process."""
    worker: str | None = None
    lease_until: datetime | None = None
    not_before: datetime | None = None
    phase: Phase | None = None
    cancel_requested: bool = False
    limit_sec: float | None = None
    """Time limit set on release; overrides the job's."""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def tries_made(self) -> int:
        return self.try_number - self.tries_base

    @property
    def added(self) -> bool:
        """Whether it was added after the plan."""
        return self.reruns is not None

    @property
    def graded(self) -> bool:
        """Whether it has a valid reward. That result is final."""
        return self.outcome is not None and self.outcome.graded

    @property
    def suspected(self) -> bool:
        """Whether it may be the trial that kills its workers. Such a trial runs with its group only."""
        return self.shared_losses >= SHARED_LOSSES_ALLOWED

    @property
    def group(self) -> str | None:
        """The group of a suspect. Workers of an older version gave none: such a suspect runs alone."""
        return (self.search_group or str(self.id)) if self.suspected else None

    def is_due(self, now: datetime) -> bool:
        """Whether it may be claimed now."""
        return self.state is TrialState.QUEUED and (self.not_before is None or self.not_before <= now)


class Claimed(Frozen):
    worker: str
    lease: timedelta


class OfTry(Frozen):
    """An event of one try. It is stale after the trial was claimed again or has ended."""

    try_number: int


class LeaseRenewed(OfTry):
    lease: timedelta
    phase: Phase | None = None


class Ended(OfTry):
    outcome: Outcome
    cause: Cause | None = None


class TryAgain(OfTry):
    """The try ended in an error that is worth another try (or its lease expired)."""

    delay: timedelta = timedelta(0)


class WorkerLost(OfTry):
    """The worker is gone. The loss counts as a try, and may end the trial, only if neither another trial nor something
    outside can be the reason."""

    shared: bool
    """Whether the worker held other trials at any time during this try."""
    last: bool
    """Whether a try that counts was the last one."""
    death: Death = Death.UNKNOWN
    group: str | None = None
    """The group of the trial, if it is suspected now; see ``domain/fleet/isolation.divide``."""


class GivenBack(OfTry):
    """The worker stops; the trial waits for another one and this try does not count."""


class CancelAsked(Frozen):
    """A queued or held trial ends; a running one is asked to stop."""


class Released(Frozen):
    """A held trial may run now."""

    limit_sec: float | None = None


class Retried(Frozen):
    """An ended trial without a grade runs again; its earlier tries are kept."""

    hold: bool = False
    """Wait until it is released."""


TrialEvent = Claimed | LeaseRenewed | Ended | TryAgain | WorkerLost | GivenBack | CancelAsked | Released | Retried


def transition(trial: Trial, event: TrialEvent, now: datetime) -> Trial:
    """Applies an event to a trial. Raises ``StaleTry`` or ``Conflict``. Only this decides how a trial changes.

    Claims, renewals and phases are single statements in a SQL store; contract tests compare them with this."""
    if isinstance(event, OfTry):
        _require_current(trial, event.try_number)
    match event:
        case TryAgain() | WorkerLost() | GivenBack() if trial.cancel_requested:
            return _end(trial, Outcome.CANCELLED, None, now)
        case Claimed():
            _require(trial, TrialState.QUEUED, "claimed")
            return _claim(trial, event, now)
        case LeaseRenewed():
            return trial.model_copy(update={"lease_until": now + event.lease, "phase": event.phase or trial.phase})
        case Ended():
            return _end(trial, event.outcome, event.cause, now)
        case TryAgain():
            return _cleared(_requeue(trial, now + event.delay if event.delay else None))
        case WorkerLost():
            return _lose(trial, event, now)
        case GivenBack():
            return _requeue(trial, None).model_copy(update={"tries_base": trial.tries_base + 1})
        case CancelAsked():
            if trial.state in (TrialState.HELD, TrialState.QUEUED):
                return _end(trial, Outcome.CANCELLED, None, now)
            return trial.model_copy(update={"cancel_requested": True}) if trial.state is TrialState.RUNNING else trial
        case Released():
            _require(trial, TrialState.HELD, "released")
            return trial.model_copy(update={"state": TrialState.QUEUED, "limit_sec": event.limit_sec})
        case Retried():
            _require(trial, TrialState.ENDED, "retried")
            require_ungraded(trial)
            return _reset(trial, event.hold)


def _claim(trial: Trial, event: Claimed, now: datetime) -> Trial:
    return trial.model_copy(
        update={
            "state": TrialState.RUNNING,
            "try_number": trial.try_number + 1,
            "worker": event.worker,
            "lease_until": now + event.lease,
            "not_before": None,
            "phase": Phase.PREPARING,
            "started_at": now,
        }
    )


def _reset(trial: Trial, hold: bool) -> Trial:
    return _requeue(trial, None).model_copy(
        update={
            "state": TrialState.HELD if hold else TrialState.QUEUED,
            "outcome": None,
            "cause": None,
            "ended_at": None,
            "started_at": None,
            "cancel_requested": False,
            "tries_base": trial.try_number,
            "shared_losses": 0,
            "outside_losses": 0,
            "search_group": None,
        }
    )


def further_attempt(trial: Trial, attempt: int) -> NewTrial:
    """Another attempt at the task of a graded trial, outside of the plan. Raises ``Conflict`` without a grade."""
    if trial.state is not TrialState.ENDED or not trial.graded:
        raise Conflict(f"Trial {trial.id} has no grade yet.", fix="Only graded trials get a further attempt.")
    return NewTrial(
        task=trial.task,
        agent_index=trial.agent_index,
        agent=trial.agent,
        model=trial.model,
        attempt=attempt,
        reruns=trial.reruns or trial.id,
        needs=trial.needs,
    )


def _lose(trial: Trial, event: WorkerLost, now: datetime) -> Trial:
    uncounted = _requeue(trial, now).model_copy(update={"tries_base": trial.tries_base + 1})
    # A trial can also kill its process with the signal that operators use. An operator is unlikely to choose just the
    # process of some suspects.
    acquitted = event.death.of_many if trial.suspected else event.death.from_outside
    if acquitted and trial.outside_losses < OUTSIDE_LOSSES_ALLOWED:
        return uncounted.model_copy(update={"outside_losses": trial.outside_losses + 1})
    # What a suspect's group has told decides: times of other machines may suggest company that was not there.
    shared = SHARING in (trial.group or "") if trial.suspected else event.shared
    if shared:
        proven = event.death in (Death.CRASH, Death.OUT_OF_MEMORY)
        losses = trial.shared_losses + (SHARED_LOSSES_ALLOWED if proven else 1)
        suspected = losses >= SHARED_LOSSES_ALLOWED
        return uncounted.model_copy(
            update={"shared_losses": losses, "search_group": event.group if suspected else None}
        )
    return _end(trial, Outcome.ERROR, Cause.WORKER_LOST, now) if event.last else _requeue(trial, now)


def _cleared(trial: Trial) -> Trial:
    """It ran to an end, and its worker lives."""
    return trial.model_copy(update={"shared_losses": 0, "search_group": None}) if trial.suspected else trial


def _end(trial: Trial, outcome: Outcome, cause: Cause | None, now: datetime) -> Trial:
    return trial.model_copy(
        update={
            "state": TrialState.ENDED,
            "outcome": outcome,
            "cause": cause,
            "lease_until": None,
            "not_before": None,
            "phase": None,
            "ended_at": now,
        }
    )


def _requeue(trial: Trial, not_before: datetime | None) -> Trial:
    return trial.model_copy(
        update={
            "state": TrialState.QUEUED,
            "worker": None,
            "lease_until": None,
            "phase": None,
            "not_before": not_before,
        }
    )


def _require(trial: Trial, state: TrialState, change: str) -> None:
    if trial.state is not state:
        raise Conflict(f"Trial {trial.id} is {trial.state}, so it cannot be {change}.")


def require_ungraded(trial: Trial) -> None:
    """Raises ``Conflict`` for a trial with a valid reward: its result is never replaced."""
    if trial.graded:
        raise Conflict(
            f"Trial {trial.id} {trial.outcome}, and a graded result is final.",
            fix="Add an attempt instead: `seatrial job again`, or POST …/attempts.",
        )


def _require_current(trial: Trial, try_number: int) -> None:
    if trial.state is not TrialState.RUNNING or trial.try_number != try_number:
        raise StaleTry(
            f"Trial {trial.id} is at try {trial.try_number} ({trial.state}); try {try_number} can no longer change it."
        )
