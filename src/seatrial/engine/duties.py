"""Background duties are repeated, and an error in one of them affects nothing else.

Workers and the API run their duties here: heartbeat, leases, recovery, clean-up, phases, live output. An error goes to
the log and into the heartbeat, and the duty is tried again. Only a cancellation ends a duty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from seatrial.engine.clock import Clock
from seatrial.errors import SeatrialError
from seatrial.ports.store import Trouble

log = logging.getLogger(__name__)

_LONGEST_ERROR = 300
_LONGEST_PAUSE_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Duty:
    """One step that is repeated, with a pause of ``every_sec`` between two steps."""

    name: str
    step: Callable[[], Awaitable[object]]
    every_sec: float
    patient: bool = True
    """Whether a worker waits longer after each error. Not for what must be told soon after an outage."""


class Duties:
    """Runs duties and remembers which of them fail now. There is one per worker, and one for the API."""

    def __init__(
        self,
        clock: Clock,
        noticed: Callable[[Exception], None] = lambda fault: None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``noticed`` is called with every error."""
        self._clock = clock
        self._noticed = noticed
        self._sleep = sleep
        self._troubles: dict[str, Trouble] = {}

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """The duties that fail now."""
        return tuple(self._troubles.values())

    async def forever(
        self,
        name: str,
        step: Callable[[], Awaitable[object]],
        every_sec: float | Callable[[], float],
        *,
        patient: bool = False,
        later: bool = False,
    ) -> None:
        """Repeats until it is cancelled. ``patient`` waits longer after each error. ``later`` begins with a pause."""
        if later:
            await self._sleep(_pause(every_sec))
        while True:
            await self.once(name, step)
            trouble = self._troubles.get(name)
            pause = _pause(every_sec)
            if trouble is not None and patient:
                pause = min(pause * 2.0 ** min(trouble.count - 1, 10), max(pause, _LONGEST_PAUSE_SEC))
            await self._sleep(pause)

    async def once[T](self, name: str, step: Callable[[], Awaitable[T]]) -> T | None:
        """Runs one step. Notes an error and returns ``None``."""
        try:
            done = await step()
        except asyncio.CancelledError as cancellation:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self.note(name, RuntimeError(f"Something inside it was cancelled: {cancellation}"))
            return None
        except Exception as fault:
            self.note(name, fault)
            return None
        self._well(name)
        return done

    def now(self, name: str, step: Callable[[], object]) -> None:
        """``once`` for a step that waits for nothing."""
        try:
            step()
        except Exception as fault:
            self.note(name, fault)
        else:
            self._well(name)

    def _well(self, name: str) -> None:
        if self._troubles.pop(name, None) is not None:
            log.info("%s works again.", name.capitalize())

    def note(self, name: str, fault: Exception) -> None:
        known = self._troubles.get(name)
        since, count = (known.since, known.count + 1) if known else (self._clock(), 1)
        self._troubles[name] = Trouble(duty=name, error=_sentence(fault), since=since, count=count)
        if count & (count - 1) == 0:  # log the 1st, 2nd, 4th, 8th …, so that a lasting error does not fill the log
            expected = isinstance(fault, SeatrialError)
            log.warning(
                "%s failed (%d times): %s", name.capitalize(), count, fault, exc_info=None if expected else fault
            )
        self._noticed(fault)


def _pause(every_sec: float | Callable[[], float]) -> float:
    return every_sec() if callable(every_sec) else every_sec


def _sentence(fault: Exception) -> str:
    if isinstance(fault, SeatrialError):
        words = str(fault)
    else:
        words = f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
    return " ".join(words.split())[:_LONGEST_ERROR]
