"""The memory that the bodies of calls may take, shared fairly between doors.

A body is read whole, because its model has to be known before it may pass, and because it is sent again after a 429.
Many large bodies at once would fill the worker's memory. So each takes its room before it is read, all of it or none,
and takes more once it is known what its text takes: one emoji makes a text four times as large as its bytes.

All together never hold more than the whole. One half is shared out equally, and nobody else takes a door's share of it.
The other half is for whoever needs more than its share, and is waited for if need be.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self

ROOM_BYTES = 256 * 1024 * 1024
_WIDEST = "\U0001f600"


def most_of_text(body: bytes) -> int:
    """What a body takes at most once it is a ``str``, which has one width for all of its characters."""
    return sys.getsizeof(_WIDEST) + (1 if body.isascii() else 4) * len(body)


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
        self._add(more)
        return True

    def resize(self, size: int) -> bool:
        """Holds so much from now on. ``False`` if the whole room has not so much more; then nothing changes.

        It may take what is left free for other doors: what is there already cannot wait, and soon becomes smaller."""
        more = size - self._size
        if more > 0:
            if self._room.held > self._size and self._room.held + more > self._room.size:
                return False
            self._add(more)
        elif more < 0:
            self._size = size
            self._room._give_back(self._door, -more)
        return True

    def _add(self, more: int) -> None:
        self._room._held[self._door] += more
        self._size += more

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
        self.size = size
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
        held = self.held
        if not held:
            return True
        share = self.size // 2 // max(len(self._doors), 1)
        beyond = self._held[door] + size - share
        if beyond > 0:
            beyond += sum(max(0, taken - share) for other, taken in self._held.items() if other != door)
        return held + size <= self.size and beyond <= self.size // 2

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
