"""The pace of calls to each provider, over all workers. ``domain/model_calls/provider_pace.py`` has the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport


class PaceStore(Protocol):
    async def exchange(
        self, worker: str, reports: Mapping[str, PaceReport], lease: timedelta, now: datetime
    ) -> dict[str, PaceGrant]:
        """Takes a worker's reports by the name of the pace, and returns what the worker may do until its next one.

        A worker that has not reported for ``lease`` holds nothing. Reports of several workers take effect one after
        another. The reports of one call are independent of each other."""
        ...

    async def leave(self, worker: str) -> None:
        """Gives back all slots of a worker that ends."""
        ...
