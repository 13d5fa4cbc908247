"""Workers, queue, limits and statistics."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.job import JobStatus
from seatrial.domain.trial import Cause
from seatrial.engine.fleet.signals import Signals
from seatrial.shapes.answers import Listing, Shape
from seatrial.shapes.trials import TrialCounts, TrialItem


class WorkerTrouble(Shape):
    """A background duty of a worker that currently fails. Trials are not affected."""

    duty: str
    error: str
    """The last error, as a sentence."""
    since: datetime
    count: int
    """How often it failed since then."""


class WorkerItem(Shape):
    worker: str
    host: str
    pid: int
    capacity: int
    """Trials at once; of a worker that packs, how many fit that declare nothing."""
    running: int
    """Trials that it runs."""
    alive: bool
    """Whether its last heartbeat is within its lease."""
    starting: bool = False
    """It has registered and is still loading."""
    draining: bool
    paused: str = ""
    """Why it claims nothing now, such as a full disk."""
    troubles: list[WorkerTrouble] = []
    """Its background duties that currently fail."""
    started_at: datetime
    seen_at: datetime
    sandboxes: list[str] = []
    """Sandboxes that work on its machine."""
    death: Death | None = None
    """How it died, once that is known."""
    memory_mb: int | None = None
    """What its trials may declare together; `null` if it counts its trials."""
    cpus: float | None = None
    lacks: list[str] = []
    """Import paths of agents that are not installed there."""
    versions: dict[str, str]


class WorkerList(Shape):
    items: list[WorkerItem]


class QueueState(Shape):
    queued: int
    delayed: int
    """Queued, but not due yet."""
    running: int
    capacity: int
    """Total of the live workers that accept trials."""
    backlog_per_worker: float | None
    """Queued trials per live worker; `null` without workers."""
    oldest_queued_at: datetime | None
    ended_last_minute: int
    workers: list[WorkerItem]


class FleetState(Shape):
    """What autoscalers follow. KEDA's `metrics-api` scaler reads one of these fields."""

    work_units: float
    """Queued and running trials, in machines."""
    desired_workers: int
    """Machines for these units, rounded up."""
    workers: int
    """Live workers that claim trials."""
    queued: int
    running: int
    queue_oldest_seconds: float
    """Age of the oldest queued trial, since it was created; 0 without queued trials."""
    machine_memory_mb: float
    """Memory of the machine in which work is counted."""
    machine_cpus: float
    """Processors of the machine in which work is counted."""

    @classmethod
    def of(cls, signals: Signals) -> FleetState:
        return cls(
            **signals.model_dump(exclude={"backlog", "machine"}),
            queued=signals.backlog.queued,
            running=signals.backlog.running,
            machine_memory_mb=signals.machine.memory_mb,
            machine_cpus=signals.machine.cpus,
        )


class RunningTrial(TrialItem):
    """A running trial."""

    sandbox: str | None = None
    """`null` until its worker has reported which sandboxes work."""


class RunningPage(Listing[RunningTrial]):
    """One page of running trials, newest first."""


class Limits(Shape):
    """Limits of this installation, named as the settings without `SEATRIAL_`."""

    sandbox: str
    trial_limit_sec: float
    default_cpus: float
    default_memory_mb: int
    default_pids: int
    network_mode: str
    upload_limit_mb: int
    archive_limit_mb: int
    waiting_limit: int
    lease_sec: float
    disk_low_water_mb: int
    image_low_water_gb: float
    model_patience_sec: float


class Stats(Shape):
    """Totals of the installation."""

    jobs: dict[JobStatus, int]
    trials: TrialCounts
    errors: dict[Cause, int]
