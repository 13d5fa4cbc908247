"""Who works, what waits, and the whole installation in numbers."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.job import JobStatus
from seatrial.domain.trial import Cause
from seatrial.shapes.page import Listing, Shape
from seatrial.shapes.trials import TrialCounts, TrialItem


class WorkerTrouble(Shape):
    """A background duty that fails at the moment; no trial is touched by it."""

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
    running: int
    """Trials that it holds."""
    alive: bool
    """Whether it has been heard of within its lease."""
    starting: bool = False
    """It is there, and still loading what it runs trials with."""
    draining: bool
    paused: str = ""
    """Why it claims nothing at the moment, such as a full disk."""
    troubles: list[WorkerTrouble] = []
    """Its background duties that fail at the moment."""
    started_at: datetime
    seen_at: datetime
    sandboxes: list[str] = []
    """Those that work where it runs, as it found out itself."""
    versions: dict[str, str]


class WorkerList(Shape):
    items: list[WorkerItem]


class QueueState(Shape):
    queued: int
    delayed: int
    """Queued, but not before a later moment."""
    running: int
    capacity: int
    """Of the workers that live and take new trials."""
    backlog_per_worker: float | None
    """Queued trials for each of them; `null` without any."""
    oldest_queued_at: datetime | None
    ended_last_minute: int
    workers: list[WorkerItem]


class RunningTrial(TrialItem):
    """A trial that somebody works on."""

    sandbox: str | None = None
    """Where it runs; `null` while its worker has not told yet what works there."""


class RunningPage(Listing[RunningTrial]):
    """One page of the trials that run, newest first."""


class Limits(Shape):
    """What this installation is set to; the settings' own names, without `SEATRIAL_`."""

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
    """The whole installation in numbers."""

    jobs: dict[JobStatus, int]
    trials: TrialCounts
    errors: dict[Cause, int]
