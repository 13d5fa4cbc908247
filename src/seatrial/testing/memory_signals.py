"""A sink of signals in memory."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import ServiceUnavailable


class MemorySignals:
    def __init__(self) -> None:
        self.published: list[dict[str, float]] = []
        self.is_away = False

    async def publish(self, values: Mapping[str, float]) -> None:
        if self.is_away:
            raise ServiceUnavailable("The sink does not answer.")
        self.published.append(dict(values))
