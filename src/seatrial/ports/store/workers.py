"""Workers, as they tell about themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from seatrial.domain.frozen import Frozen


class Trouble(Frozen):
    """A background duty of a worker that fails at the moment. No trial is touched by it."""

    duty: str
    error: str
    """The last error, as a sentence."""
    since: datetime
    count: int
    """How often it failed since then."""


class Heartbeat(Frozen):
    """What a worker tells about itself, and the tries it holds."""

    worker: str
    host: str
    pid: int
    capacity: int
    started_at: datetime
    agents: tuple[str, ...] = ()
    sandboxes: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    starting: bool = False
    """It is there, and still loading what it runs trials with."""
    draining: bool = False
    paused: str = ""
    """Why it claims nothing at the moment, such as a full disk."""
    troubles: tuple[Trouble, ...] = ()
    """Its background duties that fail at the moment."""
    seal: str = ""
    """Fingerprint of the secret key that it opens sealed provider keys with."""


class WorkerRow(Heartbeat):
    seen_at: datetime


class WorkerStore(Protocol):
    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None: ...

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]: ...

    async def forget_worker(self, worker: str) -> None: ...
