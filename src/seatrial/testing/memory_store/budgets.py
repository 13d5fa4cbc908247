"""What was spent on models, in memory."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime, timedelta

from seatrial.domain.model_calls import budget_slices
from seatrial.domain.model_calls.budget import Scope, Spending
from seatrial.domain.model_calls.budget_slices import ScopeState, SliceGrant, SliceReport


class MemoryBudgets:
    """``jobs`` are the jobs that exist. Without them, every job does."""

    def __init__(self, jobs: Container[int] | None = None) -> None:
        self._jobs = jobs
        self.states: dict[Scope, ScopeState] = {}
        self.exchanges = 0

    async def exchange(self, reports: Sequence[SliceReport], lease: timedelta, now: datetime) -> dict[str, SliceGrant]:
        self.exchanges += 1
        grants: dict[str, SliceGrant] = {}
        for report in reports:
            if self._exists(report.scope):
                before = self.states.get(report.scope, ScopeState())
                after, grants[report.holder] = budget_slices.exchange(before, report, lease, now)
                self.states[report.scope] = after
        return grants

    async def spending(self, scopes: Sequence[Scope]) -> dict[str, Spending]:
        return {scope.name: self._spending(scope) for scope in scopes}

    def _spending(self, scope: Scope) -> Spending:
        state = self.states.get(scope) if self._exists(scope) else None
        return Spending() if state is None else Spending(state.spent, budget_slices.in_flight(state.slices))

    def _exists(self, scope: Scope) -> bool:
        return scope.job_id is None or self._jobs is None or scope.job_id in self._jobs
