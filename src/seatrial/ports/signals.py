"""Where the signals of autoscalers are published, beside ``/metrics`` and the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class SignalSink(Protocol):
    async def publish(self, values: Mapping[str, float]) -> None:
        """Publishes all values, by name, as of now. Raises ``ServiceUnavailable``."""
