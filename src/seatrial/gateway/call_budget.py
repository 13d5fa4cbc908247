"""The budget, as the gate sees it. A trial without caps has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from seatrial.domain.model_calls.budget import Amount
from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.routes import Route
from seatrial.gateway.wire import CallRequest, RefusalKind


@dataclass(frozen=True, slots=True)
class NotGranted:
    """Why a call may not be made."""

    message: str
    kind: RefusalKind = "over_budget"
    """``over_budget``: a cap is spent. ``upstream_away``: the call waited too long for its part of the budget.
    ``bad_call``: its price is not known, and a cap is in dollars; or the length of its prompt is not known."""


class Grant(Protocol):
    """One call's part of the budget. Exactly one of ``settle``, ``settle_unknown`` and ``cancel`` is called, once."""

    @property
    def most_output_tokens(self) -> int | None:
        """What the answer may have at most; ``None`` if the call's own limit is within the budget."""

    def allows(self, output_tokens: int) -> bool:
        """Whether an answer that has this many tokens so far is still within the budget. Raises ``BudgetUnknown`` if it
        needs more than was reserved, and the store has not answered for seconds."""

    def lose(self) -> None:
        """A request was sent, and its usage is unknown. Its expected price is added to what the call is settled at."""

    def allows_another(self) -> bool:
        """Whether the budget allows another request in addition to the lost ones. Raises ``BudgetUnknown``."""

    def settle(self, usage: CallUsage, cost_usd: float | None) -> None: ...

    def settle_unknown(self) -> None:
        """The last request was sent, and its usage is unknown."""

    def cancel(self) -> None:
        """The last request was not sent, was refused by the provider, or is counted as lost."""


class CallBudget(Protocol):
    """What the calls of one trial may cost: its own budget, its job's and the day's."""

    async def reserve(self, request: CallRequest, route: Route, *others: Route) -> Grant | NotGranted:
        """``others``: routes of the request's further models, each of which may answer instead."""

    def left(self) -> Amount:
        """What is left of the budget, as far as the agent may know it."""
