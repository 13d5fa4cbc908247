"""The memory that the bodies of calls may take, shared fairly between doors.

A body is read whole, because its model has to be known before it may pass, and because it is sent again after a 429.
Many large bodies at once would fill the worker's memory. So each takes its room before it is read, all of it or none.
A door always has its equal share. What others do not use it may take as well, and waits for it if need be.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self

ROOM_BYTES = 256 * 1024 * 1024


@dataclass(eq=False, slots=True)
class Hold:
    """Some of the room, until it is released."""

    _room: BodyRoom
    _door: Hashable
    _size: int

    def grow(self, more: int) -> bool:
        """Whether there was room for that as well."""
        if not self._room._fits(self._door, more):
            return False
        self._room._held[self._door] += more
        self._size += more
        return True

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._room._give_back(self._door, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


@dataclass(frozen=True, eq=False, slots=True)
class _Waiting:
    door: Hashable
    size: int
    place: asyncio.Future[None]


class BodyRoom:
    """One per gate."""

    def __init__(self, size: int = ROOM_BYTES) -> None:
        self._size = size
        self._doors: set[Hashable] = set()
        self._held: Counter[Hashable] = Counter()
        self._waiting: list[_Waiting] = []

    def enter(self, door: Hashable) -> None:
        self._doors.add(door)

    def leave(self, door: Hashable) -> None:
        """The door is closed, and the shares of the others grow."""
        self._doors.discard(door)
        self._let_in()

    async def hold(self, door: Hashable, size: int) -> Hold:
        """Waits for the room."""
        if (hold := self.take(door, size)) is not None:
            return hold
        waiting = _Waiting(door, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.place
        except asyncio.CancelledError:
            if waiting.place.done() and not waiting.place.cancelled():  # it was let in at the same moment
                self._give_back(door, size)
            else:
                self._waiting.remove(waiting)
            raise
        return Hold(self, door, size)

    def take(self, door: Hashable, size: int) -> Hold | None:
        """The same without waiting; ``None`` if there is no room now."""
        if not self._fits(door, size):
            return None
        self._held[door] += size
        return Hold(self, door, size)

    def empty(self, door: Hashable) -> Hold:
        """A hold of nothing, to grow."""
        return Hold(self, door, 0)

    @property
    def held(self) -> int:
        return self._held.total()

    def _fits(self, door: Hashable, size: int) -> bool:
        """The only body of all always fits; otherwise one larger than the room would wait for ever."""
        share = self._size // max(len(self._doors), 1)
        return self._held[door] + size <= share or not self.held or self.held + size <= self._size

    def _give_back(self, door: Hashable, size: int) -> None:
        self._held[door] -= size
        if not self._held[door]:
            del self._held[door]
        self._let_in()

    def _let_in(self) -> None:
        for waiting in list(self._waiting):
            if self._fits(waiting.door, waiting.size):
                self._waiting.remove(waiting)
                self._held[waiting.door] += waiting.size
                waiting.place.set_result(None)
