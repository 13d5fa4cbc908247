"""A platform in memory: machines that an autoscaler may end unless they are protected, and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seatrial.errors import ProtectionRefused, ServiceUnavailable
from seatrial.ports.platform import Notice


class FakePlatform:
    """Knows which machines are protected, and ends those that are not. Never asks a worker."""

    def __init__(self, delays: Callable[[], int] = lambda: 0) -> None:
        """``delays``: how many turns of the event loop a call takes, before and after its effect."""
        self.protected: dict[str, bool] = {}
        """Every machine that has not been ended."""
        self.ended: list[str] = []
        self.refuses = False
        self.is_away = False
        self.calls: list[tuple[str, str]] = []
        """The machine and the call: ``protect``, ``release``, ``end`` or ``drained``."""
        self._delays = delays

    def add(self, machine: str, renew_sec: float | None = None) -> FakeMachine:
        self.protected[machine] = False
        return FakeMachine(self, machine, renew_sec)

    @property
    def victims(self) -> list[str]:
        """The machines that the autoscaler may choose."""
        return sorted(machine for machine, is_protected in self.protected.items() if not is_protected)

    def end(self, machine: str) -> None:
        """The autoscaler's choice."""
        assert self.protected.pop(machine) is False, "the platform keeps its word"
        self.ended.append(machine)

    async def call(self, machine: str, what: str) -> None:
        await self._wait()
        self.calls.append((machine, what))
        if self.is_away:
            raise ServiceUnavailable("The platform does not answer.")
        if what == "protect" and (self.refuses or machine not in self.protected):
            raise ProtectionRefused(f"The machine {machine} is not protected.")
        if what == "drained":
            return
        if what == "end":
            self.protected.pop(machine, None)
            self.ended.append(machine)
        elif machine in self.protected:
            self.protected[machine] = what == "protect"
        await self._wait()

    async def _wait(self) -> None:
        for _ in range(self._delays()):
            await asyncio.sleep(0)


class FakeMachine:
    """The protection, the notices and the departure of one machine."""

    def __init__(self, platform: FakePlatform, name: str, renew_sec: float | None = None) -> None:
        self.name = name
        self.renew_sec = renew_sec
        self.notice: Notice | None = None
        self._platform = platform

    async def protect(self) -> None:
        await self._platform.call(self.name, "protect")

    async def release(self) -> None:
        await self._platform.call(self.name, "release")

    async def end_machine(self) -> None:
        await self._platform.call(self.name, "end")

    async def drained(self) -> None:
        await self._platform.call(self.name, "drained")

    async def look(self) -> Notice | None:
        return self.notice
