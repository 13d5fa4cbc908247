"""What was spent on models, and the slices of caps that workers hold.

``domain/model_calls/budget_slices.py`` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from seatrial.domain.model_calls.budget import Scope, Spending
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport


class BudgetStore(Protocol):
    async def exchange(self, reports: Sequence[SliceReport], lease: timedelta, now: datetime) -> dict[str, SliceGrant]:
        """Takes the reports of one worker, at most one for each holder, and answers each by the name of its holder.

        Reports of several workers take effect one after another, so that the slices of all never hold more than the
        cap. All reports of one call take effect, or none. A report that was taken before is answered and changes
        nothing. The scope of a job that was deleted has no answer. Scopes are deleted with their job."""
        ...

    async def spending(self, scopes: Sequence[Scope]) -> dict[str, Spending]:
        """What was spent so far, by the name of the scope. Every scope has an answer."""
        ...
