"""The pace of providers in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from seatrial.domain.model_calls import provider_pace
from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport, PaceState, WorkerShare


class MemoryPace:
    def __init__(self) -> None:
        self.states: dict[str, PaceState] = {}
        self.shares: dict[tuple[str, str], tuple[WorkerShare, datetime]] = {}
        self.exchanges = 0

    async def exchange(
        self, worker: str, reports: Mapping[str, PaceReport], lease: timedelta, now: datetime
    ) -> dict[str, PaceGrant]:
        self.exchanges += 1
        grants: dict[str, PaceGrant] = {}
        for name, report in reports.items():
            live = {who: share for (pace, who), (share, until) in self.shares.items() if pace == name and until > now}
            mine = live.pop(worker, None) or WorkerShare(worker=worker, served_at=now)
            state, mine, grants[name] = provider_pace.exchange(
                self.states.get(name, PaceState()), mine, list(live.values()), report, now
            )
            self.states[name] = state
            self.shares[name, worker] = (mine, now + lease)
        return grants

    async def leave(self, worker: str) -> None:
        self.shares = {key: kept for key, kept in self.shares.items() if key[1] != worker}
