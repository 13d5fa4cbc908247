"""The memory that the bodies of calls may take, shared fairly between doors.

A body is read whole, because its model has to be known before it may pass, and because it is sent again after a 429.
Many large bodies at once would fill the worker's memory. So each body
reserves its memory before it is read, all of it or none, and reserves more once the size of its text is known: one
emoji makes a text four times as large as its bytes.

Half of the memory is divided equally between the doors, and each door has its share for itself. The other half is for
doors that need more than their share; they wait until it is free.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self

MEMORY_BYTES = 256 * 1024 * 1024
_WIDEST = "\U0001f600"


def most_of_text(body: bytes) -> int:
    """What a body takes at most once it is a ``str``, which has one width for all of its characters."""
    return sys.getsizeof(_WIDEST) + (1 if body.isascii() else 4) * len(body)


@dataclass(eq=False, slots=True)
class Hold:
    """Memory that one body has reserved, until it is released."""

    _memory: BodyMemory
    _door: Hashable
    _size: int

    def grow(self, more: int) -> bool:
        """Reserves more. ``False`` if there is not enough; then nothing changes."""
        if not self._memory._fits(self._door, more):
            return False
        self._add(more)
        return True

    def resize(self, size: int) -> bool:
        """Changes the reservation to ``size``. ``False`` if there is not enough memory; then nothing changes.

        It may use the shares of other doors: this body is in memory already, and soon becomes smaller."""
        more = size - self._size
        if more > 0:
            if self._memory.held > self._size and self._memory.held + more > self._memory.size:
                return False
            self._add(more)
        elif more < 0:
            self._size = size
            self._memory._give_back(self._door, -more)
        return True

    def _add(self, more: int) -> None:
        self._memory._held[self._door] += more
        self._size += more

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._memory._give_back(self._door, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


@dataclass(frozen=True, eq=False, slots=True)
class _Waiting:
    door: Hashable
    size: int
    place: asyncio.Future[None]


class BodyMemory:
    """One per gate."""

    def __init__(self, size: int = MEMORY_BYTES) -> None:
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
        """Waits until there is enough memory."""
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
        """The same without waiting; ``None`` if there is not enough now."""
        if not self._fits(door, size):
            return None
        self._held[door] += size
        return Hold(self, door, size)

    def empty(self, door: Hashable) -> Hold:
        """A reservation of nothing, which can grow."""
        return Hold(self, door, 0)

    @property
    def held(self) -> int:
        return self._held.total()

    def _fits(self, door: Hashable, size: int) -> bool:
        """A body always fits if it is the only one. Otherwise one larger than all the memory would wait forever."""
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
