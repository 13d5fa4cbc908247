"""The installation: tokens of callers, keys of model providers, workers, and totals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import ConfigDict

from seatrial.domain.fleet.needs import Abilities
from seatrial.domain.fleet.packing import Packing
from seatrial.domain.fleet.work_units import MachineSize, OpenWork
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import JobCounts, JobStatus
from seatrial.domain.token import NewToken, Token
from seatrial.domain.trial import Cause


class TokenStore(Protocol):
    async def save(self, token: NewToken, now: datetime) -> Token: ...

    async def get(self, fingerprint: str) -> Token | None:
        """Returns the token also if it is not valid any more; the caller checks that."""

    async def all(self) -> list[Token]:
        """All of them, newest first."""

    async def revoke(self, token_id: int, now: datetime) -> Token: ...

    async def note_use(self, token_id: int, now: datetime) -> None: ...


class ProviderKey(Frozen):
    """A key of the installation, encrypted with its secret key."""

    name: str
    sealed: str
    set_at: datetime


class KeyStore(Protocol):
    async def save(self, name: str, sealed: str, now: datetime) -> None: ...

    async def all(self) -> list[ProviderKey]: ...

    async def delete(self, name: str) -> None: ...


class Trouble(Frozen):
    """A background duty of a worker that currently fails. Trials are not affected."""

    duty: str
    error: str
    """The last error, as a sentence."""
    since: datetime
    count: int
    """How often it failed since then."""


class Heartbeat(Frozen):
    """The status report of a worker. Workers of a newer version may tell more."""

    model_config = ConfigDict(extra="ignore")

    worker: str
    host: str
    pid: int
    capacity: int
    started_at: datetime
    agents: tuple[str, ...] = ()
    sandboxes: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    starting: bool = False
    """It has registered and is still loading."""
    draining: bool = False
    paused: str = ""
    """Why it claims nothing now, such as a full disk."""
    troubles: tuple[Trouble, ...] = ()
    """Its background duties that currently fail."""
    seal: str = ""
    """Fingerprint of its secret key, which opens sealed provider keys."""
    supervisor: str = ""
    """The process that started it and sees how it ends, named like a worker."""
    cgroup: str = ""
    memory_kills: int | None = None
    """How many processes of its cgroup the kernel has killed for lack of memory; ``None`` if unknown."""
    death: Death | None = None
    """How it died, once that is known."""
    machine: MachineSize | None = None
    """The whole machine that it runs on; ``None`` if an older version wrote it."""
    abilities: Abilities = Abilities()
    packing: Packing | None = None
    """What fits into it; ``None`` if it only counts its trials."""

    @property
    def works(self) -> bool:
        """Whether it claims trials."""
        return not (self.starting or self.draining or self.paused)


class WorkerRow(Heartbeat):
    seen_at: datetime


class WorkerStore(Protocol):
    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None: ...

    async def all(self, seen_since: datetime | None = None) -> list[WorkerRow]: ...

    async def died(self, worker: str, death: Death) -> None:
        """Notes how a worker died. A later heartbeat of it shows that it lives."""

    async def forget(self, worker: str) -> None: ...

    async def leave_if_spare(self, worker: str, minimum: int, seen_since: datetime, now: datetime) -> bool:
        """Lets an idle worker leave if at least ``minimum`` live workers stay; ``True`` if it may.

        Of many callers only as many leave as there are spare ones. Workers that do not work now, that were allowed to
        leave before, or that were last seen before ``seen_since`` do not count. A worker with a running trial stays."""
        ...


class DutyStore(Protocol):
    """Duties that one process does for all, such as publishing numbers."""

    async def take(self, duty: str, holder: str, lease: timedelta, now: datetime) -> bool:
        """Whether ``holder`` has the duty until ``now + lease``. It extends its own lease; it gets another's only
        after that has expired."""
        ...


class Overview(Frozen):
    """The whole installation in numbers."""

    jobs: dict[JobStatus, int] = {}
    trials: JobCounts = JobCounts()
    errors: dict[Cause, int] = {}


class Backlog(Frozen):
    """What waits and what runs, for ``/queue`` and the metrics."""

    queued: int = 0
    delayed: int = 0
    """Queued, but not before a later moment."""
    running: int = 0
    oldest_queued_at: datetime | None = None
    ended_last_minute: int = 0


class Experience(Frozen):
    """Average time and cost of earlier trials of a task with an agent and a model."""

    task: str
    agent: str
    model: str | None
    trials: int
    seconds: float
    cost_usd: float | None = None


class TotalsStore(Protocol):
    async def overview(self, origin: str | None = None) -> Overview:
        """All jobs, or only those created through one API."""

    async def backlog(self, now: datetime) -> Backlog: ...

    async def open_work(self) -> list[OpenWork]:
        """Queued and running trials by job and task. Its cost does not depend on how many trials have ended."""

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        """Averages over the graded trials of these tasks. Replayed ones cost nothing, and are left out."""
