"""What was spent of the caps of a trial or a job, for the people who watch it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from seatrial.domain.job import JobSpec
from seatrial.domain.model_calls.budget import Cap, Scope, Spending
from seatrial.ports.store.budgets import BudgetStore


@dataclass(frozen=True, slots=True)
class CapUsage:
    """One cap, and what was spent of it in its whole scope."""

    scope: Scope
    cap: Cap
    spending: Spending


@dataclass(frozen=True, slots=True)
class CapUsages:
    store: BudgetStore
    day: Cap
    """The cap of this installation for each day."""

    async def of_job(self, job_id: int, spec: JobSpec, now: datetime) -> list[CapUsage]:
        """The job's, also without a cap; and the day's, if it has a cap that counts this job."""
        return await self._look([(Scope.of_job(job_id), spec.budget.job), *self._of_day(spec, now)])

    async def of_trial(self, job_id: int, trial_id: int, spec: JobSpec, now: datetime) -> list[CapUsage]:
        """Those of the trial, its job and the day that have a cap."""
        trial = (Scope.of_trial(job_id, trial_id), spec.budget.trial)
        return await self._look(
            [held for held in (trial, (Scope.of_job(job_id), spec.budget.job), *self._of_day(spec, now)) if held[1]]
        )

    def _of_day(self, spec: JobSpec, now: datetime) -> list[tuple[Scope, Cap]]:
        return [(Scope.of_day(now), self.day)] if self.day and spec.own_keys else []

    async def _look(self, wanted: Sequence[tuple[Scope, Cap]]) -> list[CapUsage]:
        found = await self.store.spending([scope for scope, _ in wanted]) if wanted else {}
        return [CapUsage(scope, cap, found[scope.name]) for scope, cap in wanted]
