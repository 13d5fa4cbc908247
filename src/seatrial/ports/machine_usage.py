"""How the worker processes of one machine share its memory and processors."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from seatrial.domain.fleet.packing import Size


class MachineUsage(Protocol):
    """What the worker processes of this machine use. Each has one of its own."""

    def turn(self) -> AbstractAsyncContextManager[bool]:
        """One process claims at a time. ``False``: another one takes too long, so nothing should be claimed now."""

    def others(self) -> Size:
        """What the trials of the other processes declare. A dead process holds nothing."""

    def declare(self, held: Size) -> None:
        """Says what the trials of this process declare together."""

    def close(self) -> None:
        """This process holds nothing any more."""
