"""Reads what running tries write and stores it as live output and steps, a few times a second, in one write for all.

There is one per worker. The executor starts it for each try and lets it catch up before the result is recorded. No
result depends on it. A try that ends before the first look costs nothing, because its files are saved at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from seatrial.domain.event import NewEvent
from seatrial.domain.output import NewOutput
from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.duties import Duties
from seatrial.engine.live.calls import CallLog
from seatrial.engine.live.steps import StepLog
from seatrial.engine.live.tail import Tail, is_shown
from seatrial.engine.trials.redaction import Redaction
from seatrial.errors import NotFound, StoreUnavailable
from seatrial.ports.runner import Window
from seatrial.ports.store import Store
from seatrial.system.growing_files import FileView

_QUIET_AFTER_SEC = 3.0
_CROWD = 128
_CROWD_REST = 4.0
"""With more than ``_CROWD`` trials, the pause after a round is at least this many times as long as the round. So this
takes at most a fifth of the time. With fewer trials the pause is constant."""
_LONGEST_PAUSE_SEC = 5.0
_MOST_AT_ONCE = 4 << 20
"""Maximum characters that one round reads over all tries. The rest waits for the next round."""


class Followed:
    """One try whose output is read."""

    def __init__(
        self,
        trial: Trial,
        directory: Path,
        secrets: Iterable[str],
        first_look: float,
        timer: Callable[[], float],
    ) -> None:
        redaction = Redaction(secrets)
        self.trial = trial
        self.tail = Tail(trial, directory, redaction)
        self.steps = StepLog(trial, directory, redaction, timer)
        self.calls = CallLog(trial, directory, redaction, timer)
        self.window: Window | None = None
        self.next_look = first_look
        self.last_news = first_look
        self.was_looked_at = False

    def show(self, window: Window) -> None:
        """The runner calls this with a view into the sandbox."""
        self.window = window

    async def look_inside(self) -> Sequence[FileView] | None:
        return await self.window.look(self.tail.seen, is_shown) if self.window is not None else None


class LiveLog:
    """Use with ``async with`` around a worker."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        every_sec: float = 0.3,
        first_after_sec: float = 0.3,
        linger_sec: float = 5.0,
        duties: Duties | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """``linger_sec``: how long the output of an ended trial stays, so that clients can read it."""
        self._sleep = sleep
        self._timer = timer
        self._store = store
        self._clock = clock
        self._every_sec = every_sec
        self._first_after_sec = first_after_sec
        self._linger_sec = linger_sec
        self._duties = duties or Duties(clock, sleep=sleep)
        self._took = 0.0
        self._followed: dict[int, Followed] = {}
        self._rings: set[int] = set()
        self._ended: dict[int, float] = {}
        self._looking = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._looks: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def follow(self, trial: Trial, directory: Path, secrets: Iterable[str]) -> Iterator[Followed]:
        followed = Followed(trial, directory, secrets, self._timer() + self._first_after_sec, self._timer)
        self._followed[trial.id] = followed
        try:
            yield followed
        finally:
            self.let_go(followed)

    def let_go(self, followed: Followed) -> None:
        """Stops following. The caller is about to move the files of the try."""
        if self._followed.get(followed.trial.id) is followed:
            del self._followed[followed.trial.id]

    async def catch_up(self, followed: Followed) -> None:
        """Stops following and writes the rest. Called before the result is recorded."""
        self.let_go(followed)
        if followed.was_looked_at:
            await self._duties.once("live output", lambda: self._write_rest(followed))

    async def _write_rest(self, followed: Followed) -> None:
        async with self._looking:
            pieces, events = await asyncio.to_thread(_news, followed, None, True)
        await self._write(pieces, events)

    def ended(self, trial: Trial) -> None:
        """Schedules the removal of the output. Called when the final result is recorded."""
        if trial.id in self._rings or trial.try_number > 1:
            self._rings.discard(trial.id)
            self._ended[trial.id] = self._timer() + self._linger_sec

    async def look(self) -> None:
        """Reads the output of all tries that are due."""
        now = self._timer()
        async with self._looking:
            due = [followed for followed in self._followed.values() if followed.next_look <= now]
            if not due:
                return
            inside = await asyncio.gather(*(followed.look_inside() for followed in due))
            pieces, events = await asyncio.to_thread(self._gather, list(zip(due, inside, strict=True)), now)
        await self._write(pieces, events)

    def _gather(
        self, due: list[tuple[Followed, Sequence[FileView] | None]], now: float
    ) -> tuple[list[NewOutput], list[NewEvent]]:
        pieces: list[NewOutput] = []
        events: list[NewEvent] = []
        taken = 0
        for followed, inside in sorted(due, key=lambda pair: pair[0].next_look):
            if taken >= _MOST_AT_ONCE:
                break
            output, steps = _news(followed, inside)
            taken += sum(len(piece.text) for piece in output)
            pieces += output
            events += steps
            if output or steps:
                followed.last_news = now
            quiet = now - followed.last_news > _QUIET_AFTER_SEC
            followed.was_looked_at = True
            followed.next_look = now + self._every_sec * (2 if quiet else 1)
        return pieces, events

    async def _write(self, pieces: list[NewOutput], events: list[NewEvent]) -> None:
        """Drops output that the store cannot take now. It is still in the saved files."""
        async with self._writing:
            with contextlib.suppress(StoreUnavailable, NotFound):
                if pieces:
                    self._rings.update(piece.trial_id for piece in pieces)
                    await self._store.output.append(pieces, self._clock())
                if events:
                    await self._store.events.append(events, self._clock())

    async def _drop(self, until: float) -> None:
        gone = [trial_id for trial_id, moment in self._ended.items() if moment <= until]
        for trial_id in gone:
            del self._ended[trial_id]
        again = self._followed.keys()
        with contextlib.suppress(StoreUnavailable):
            await self._store.output.drop([trial_id for trial_id in gone if trial_id not in again])

    def _pause(self) -> float:
        if len(self._followed) <= _CROWD:
            return self._every_sec
        return max(self._every_sec, min(self._took * _CROWD_REST, _LONGEST_PAUSE_SEC))

    async def _round(self) -> None:
        began = self._timer()
        try:
            await self.look()
            if self._ended:
                await self._drop(self._timer())
        finally:
            self._took = self._timer() - began

    async def __aenter__(self) -> Self:
        looking = self._duties.forever("live output", self._round, self._pause, later=True)
        self._looks = asyncio.create_task(looking, name="live-log")
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._looks is not None:
            self._looks.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looks
        if self._ended:
            # Give clients time to read the final output.
            latest = max(self._ended.values()) - self._linger_sec
            await self._sleep(max(0.0, min(1.0, latest + 1.0 - self._timer())))
            await self._duties.once("live output", lambda: self._drop(float("inf")))


def _news(
    followed: Followed, inside: Sequence[FileView] | None, last: bool = False
) -> tuple[list[NewOutput], list[NewEvent]]:
    pieces = followed.tail.read(inside, last)
    if last:  # the first read may have skipped the middle of a file
        pieces += followed.tail.read(None, last)
    return pieces, followed.steps.read(last) + followed.calls.read(last)
