"""Single flight: concurrent calls with the same key run once, and all callers get the result."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.sandboxes.images.image import LogSink


@dataclass(slots=True)
class _Flight:
    task: asyncio.Task[Any] | None = None
    waiters: int = 0
    sinks: list[LogSink] = field(default_factory=list)

    def log(self, text: str) -> None:
        for sink in list(self.sinks):
            try:
                sink(text)
            except Exception:  # a broken log of one caller must not end the call of the others
                self.sinks.remove(sink)


class SingleFlight[T]:
    """The running calls, by key. A call is cancelled when no caller waits for it any more."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}

    async def join(self, key: Hashable, start: Callable[[LogSink], Awaitable[T]], log: LogSink | None = None) -> T:
        """Starts the call or waits for the running one. All callers get its failure."""
        key = (id(asyncio.get_running_loop()), key)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            flight.task = asyncio.ensure_future(self._fly(key, flight, start))
        return await self._wait(key, flight, log)

    async def _fly(self, key: Hashable, flight: _Flight, start: Callable[[LogSink], Awaitable[T]]) -> T:
        try:
            return await start(flight.log)
        finally:
            self._forget(key, flight)

    async def _wait(self, key: Hashable, flight: _Flight, log: LogSink | None) -> T:
        task = flight.task
        assert task is not None
        flight.waiters += 1
        if log is not None:
            flight.sinks.append(log)
        try:
            result: T = await asyncio.shield(task)
            return result
        except SeatrialError as error:
            # One exception object raised in many tasks would collect the tracebacks of all.
            raise copy.copy(error) from error.__cause__
        finally:
            flight.waiters -= 1
            if log in flight.sinks:
                flight.sinks.remove(log)
            if flight.waiters == 0 and not task.done():
                self._forget(key, flight)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.exception()  # it failed during the cancellation, and no caller is left to get the error

    def _forget(self, key: Hashable, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
