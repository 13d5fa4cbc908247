"""Sends events to many listeners with a single reader of the store.

``live.event_stream`` opens a ``Listener`` per client. While there are listeners, the reader polls the event log and the
live output of the watched trials several times a second. Each message is serialised once and put into the queues of all
its listeners. A full queue is emptied, and its listener reads from the store instead, so slow clients delay no others.
This module knows nothing about HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from seatrial.api.live.messages import Batch, message_of
from seatrial.domain.event import Event, EventKind
from seatrial.errors import StoreUnavailable
from seatrial.ports.store import Store

log = logging.getLogger(__name__)

_EVERY_SEC = 0.2
_PER_LISTENER_SEC = 0.0006
"""Many listeners are served less often, in larger batches: 500 listeners three times a second."""
_PAGE = 1000
_LONGEST_QUEUE = 2000

_Audience = tuple[int | None, int | None]
"""Who receives an event: listeners of a job, of a trial, or of everything."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a listener subscribes to: a job, a trial, or everything."""

    job_id: int | None = None
    trial_id: int | None = None
    kinds: frozenset[str] = frozenset()
    """Empty means all kinds of events."""
    output: bool = False


@dataclass(eq=False, slots=True)
class Listener:
    """One client. ``queue`` holds new messages; ``lost_track`` means that some were dropped."""

    choice: Choice
    trials: set[int] = field(default_factory=set)
    """Trials whose output it receives."""
    queue: list[Batch] = field(default_factory=list)
    lost_track: bool = True
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: int = 0

    def hear(self, batch: Batch) -> None:
        if self.lost_track:
            return
        self.queue.append(batch)
        self._waiting += len(batch.messages)
        if self._waiting > _LONGEST_QUEUE and len(self.queue) > 1:
            self.take()
            self.lost_track = True
        self.news.set()

    def take(self) -> list[Batch]:
        taken, self.queue, self._waiting = self.queue, [], 0
        return taken


class Broadcast:
    """One per process. Its reader runs only while there are listeners."""

    def __init__(
        self, store: Store, every_sec: float = _EVERY_SEC, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._store = store
        self._every_sec = every_sec
        self._sleep = sleep
        self._listeners: set[Listener] = set()
        self._reading = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._last_event = 0
        self._last_output = 0
        self.is_closed = False

    def close(self) -> None:
        """Ends every stream, so that shutdown does not wait for clients that never disconnect."""
        self.is_closed = True
        for listener in self._listeners:
            listener.news.set()

    @contextlib.asynccontextmanager
    async def listen(self, choice: Choice) -> AsyncIterator[Listener]:
        """Receives nothing until ``join``."""
        listener = Listener(choice, {choice.trial_id} if choice.output and choice.trial_id is not None else set())
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    async def join(self, listener: Listener, trials: Iterable[int] = ()) -> None:
        """From now on its queue receives everything new; the listener reads older events from the store after this.

        Waits for a running round to end: its results would be lost for this listener.
        """
        async with self._reading:
            if self._reader is None:
                self._last_event = await self._store.events.last()
                self._reader = asyncio.create_task(self._read_forever(), name="broadcast")
            listener.trials.update(trials)
            listener.take()
            listener.lost_track = False

    async def _read_forever(self) -> None:
        while True:
            await self._sleep(max(self._every_sec, len(self._listeners) * _PER_LISTENER_SEC))
            try:
                async with self._reading:
                    over = await self._tell_events()
                    await self._tell_output()
                    for listener, trial_id in over:  # its final output was sent just now
                        listener.trials.discard(trial_id)
            except StoreUnavailable as fault:
                log.warning("Live events wait for the store: %s", fault)
            except Exception:  # one bad event must not stop the others
                log.exception("Could not send live events")

    async def _tell_events(self) -> list[tuple[Listener, int]]:
        over: list[tuple[Listener, int]] = []
        while events := await self._store.events.read(after=self._last_event, limit=_PAGE):
            self._last_event = events[-1].seq
            over += self._watch_trials(events)
            self._tell(events)
            if len(events) < _PAGE:
                break
        return over

    def _tell(self, events: Sequence[Event]) -> None:
        audiences: dict[_Audience, list[Listener]] = {}
        for listener in self._listeners:
            audiences.setdefault((listener.choice.job_id, listener.choice.trial_id), []).append(listener)
        chosen: dict[_Audience, list[Event]] = {audience: [] for audience in audiences}
        for event in events:
            for audience in {(None, None), (event.job_id, None), (None, event.trial_id)}:
                if audience in chosen:
                    chosen[audience].append(event)
        messages = {event.seq: message_of(event) for mine in chosen.values() for event in mine}
        for audience, mine in chosen.items():
            if mine:
                batch = Batch.made_of(tuple(messages[event.seq] for event in mine))
                for listener in audiences[audience]:
                    listener.hear(batch)

    def _watch_trials(self, events: Sequence[Event]) -> list[tuple[Listener, int]]:
        """Adds claimed trials for listeners of a whole job's output; returns the trials that ended."""
        over: list[tuple[Listener, int]] = []
        for listener in self._listeners:
            if listener.choice.output and listener.choice.job_id is not None:
                mine = (event for event in events if event.job_id == listener.choice.job_id)
                for event in mine:
                    if event.kind is EventKind.TRIAL_CLAIMED and event.trial_id is not None:
                        listener.trials.add(event.trial_id)
                    elif event.kind is EventKind.TRIAL_ENDED and event.trial_id is not None:
                        over.append((listener, event.trial_id))
        return over

    async def _tell_output(self) -> None:
        audiences: dict[frozenset[int], list[Listener]] = {}
        for listener in self._listeners:
            if listener.trials:
                audiences.setdefault(frozenset(listener.trials), []).append(listener)
        ids = sorted(frozenset().union(*audiences))
        while pieces := await self._store.output.read(ids, after=self._last_output, limit=_PAGE):
            self._last_output = pieces[-1].seq
            messages = [(piece.trial_id, message_of(piece)) for piece in pieces]
            for trials, listeners in audiences.items():
                if mine := tuple(message for trial_id, message in messages if trial_id in trials):
                    batch = Batch.made_of(mine)
                    for listener in listeners:
                        listener.hear(batch)
            if len(pieces) < _PAGE:
                return
