"""Worker processes of one machine share its memory and processors through an account."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from seatrial.domain.fleet.packing import Size


class RoomAccount(Protocol):
    def turn(self) -> AbstractAsyncContextManager[bool]:
        """One process claims at a time. ``False``: another one takes too long, so nothing should be claimed now."""

    def others(self) -> Size:
        """What the trials of the other processes declare. A dead process holds nothing."""

    def declare(self, held: Size) -> None:
        """Says what the trials of this process declare together."""

    def close(self) -> None:
        """This process holds nothing any more."""
