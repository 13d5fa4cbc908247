"""The platform that a worker's machine belongs to: an Auto Scaling group, an ECS service, or none.

A platform may end machines by its own choice. A worker keeps it from choosing a machine that holds trials, learns when
its machine must go, and ends its machine after it has left for good.
"""

from __future__ import annotations

from typing import Protocol

from seatrial.domain.frozen import Frozen


class ScaleInProtection(Protocol):
    """Keeps the platform from ending this machine by its own choice.

    Any call may raise ``ServiceUnavailable``; a repeated call is safe."""

    @property
    def renew_sec(self) -> float | None:
        """How often ``protect`` must be repeated, well before it expires; ``None`` if it does not expire."""

    async def protect(self) -> None:
        """Returns once the platform has confirmed that it does not choose this machine. Raises ``ProtectionRefused``
        if it does not confirm that, such as for a machine that it ends already."""

    async def release(self) -> None:
        """The platform may choose this machine."""


class Notice(Frozen):
    """The platform is about to end this machine."""

    reason: str
    within_sec: float | None = None
    """The seconds that are left; ``None`` if the platform waits for the worker, or does not say."""


class Notices(Protocol):
    async def look(self) -> Notice | None:
        """The notice, if there is one. Raises ``ServiceUnavailable``."""


class Departure(Protocol):
    """What happens to the machine after its last worker has left."""

    async def end_machine(self) -> None:
        """After an idle leave: ends this machine, and makes the platform want one less. Raises
        ``ServiceUnavailable``."""

    async def drained(self) -> None:
        """After a notice: the platform need not wait any longer. Raises ``ServiceUnavailable``."""
