"""Reserves each call's price from the trial's budget before it is made, and settles it afterwards.

What a call will cost is not known beforehand. Agents ask for 64,000 tokens and use 800; reserving the worst case would
block a budget before it is spent. So the length of this trial's recent answers is expected, and the budget says how
much more the call may cost. Near the cap, the answer's length is clamped to that, and a stream that gets there is cut.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from seatrial.domain.model_calls.budget import NOTHING, Amount
from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.engine.budgets.trial_budget import PATIENCE_SEC, BudgetUnknown, Refused, Reservation, TrialBudget
from seatrial.gateway.call_budget import NotGranted
from seatrial.gateway.routes import Route
from seatrial.gateway.wire import CallRequest

FIRST_OUTPUT = 1_000
"""Tokens that are expected of a trial's first answer."""
LONGEST_OUTPUT = 64_000
"""Tokens that an answer without a limit of its own may have, if no list says what the model gives."""
_LONGEST_ANSWER = 100_000_000
"""More tokens than any model answers, whatever a request asks for."""
_RECENT = 8


@dataclass(frozen=True, slots=True)
class _Tariff:
    """What a call costs by the length of its answer."""

    request: CallRequest
    routes: tuple[Route, ...]
    """Of all models that may answer. The dearest counts."""
    _known: dict[int, Amount] = field(default_factory=dict)

    def amount(self, output_tokens: int) -> Amount:
        if (known := self._known.get(output_tokens)) is None:
            usage = CallUsage(input_tokens=self.request.input_tokens_estimate, output_tokens=output_tokens)
            known = self._known[output_tokens] = _amount(usage, self.dollars(usage))
        return known

    @property
    def longest_output(self) -> int:
        """Of all answers together. If the request has no limit, the model's own holds. That one is not sent: models
        refuse a limit above their own, and lists of models have mistakes."""
        if self.request.most_output_tokens is not None:
            return min(self.request.most_output_tokens, _LONGEST_ANSWER)
        listed = [route.price.price.longest_output if route.price is not None else None for route in self.routes]
        return max(each or LONGEST_OUTPUT for each in listed) * self.request.choices

    @property
    def unknown(self) -> str:
        """What of the call has no known price; empty if all of it has one."""
        for route in self.routes:
            if route.price is None:
                return f"the model {route.litellm_name}"
        if self.request.provider_tools:
            return f"a tool that runs at the provider ({', '.join(self.request.provider_tools)[:200]})"
        nothing = CallUsage(input_tokens=0, output_tokens=0)
        for route in self.routes:
            if route.price is not None and route.price.price.cost_of(nothing, self.request.ways) is None:
                return f"to be served as {', '.join(self.request.ways)[:200]}"
        return ""

    def dollars(self, usage: CallUsage) -> float | None:
        found = [self._dollars(route, usage) for route in self.routes]
        return max((each for each in found if each is not None), default=None)

    def _dollars(self, route: Route, usage: CallUsage) -> float | None:
        if route.price is None:
            return None
        price = route.price.price
        told = price.cost_of(usage, self.request.ways)
        return told if told is not None else price.cost_of(usage)

    def longest(self, limit: Amount, most: int) -> int:
        """The longest answer within the limit, at most ``most``. Prices only grow with the length."""
        if limit.covers(self.amount(most)):
            return most
        least = 0
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if limit.covers(self.amount(middle)) else (least, middle)
        return least


class TrialCallBudget:
    """Implements ``CallBudget`` with the budget of one try. ``in_dollars``: at least one of its caps is."""

    def __init__(self, budget: TrialBudget, *, in_dollars: bool = False, patience_sec: float = PATIENCE_SEC) -> None:
        self._budget = budget
        self._in_dollars = in_dollars
        self._patience_sec = patience_sec
        self._recent: deque[int] = deque(maxlen=_RECENT)

    async def reserve(self, request: CallRequest, route: Route, *others: Route) -> BudgetGrant | NotGranted:
        tariff = _Tariff(request, (route, *others))
        if self._in_dollars and (unknown := tariff.unknown):
            return NotGranted(f"The budget is in dollars, and the price of {unknown} is not known.", "bad_call")
        if request.unsized and self._budget.counts_tokens:
            named = ", ".join(request.unsized)[:200]
            words = f"The budget counts tokens, and it is not known how many {named} adds to the prompt."
            return NotGranted(f"{words} Send the content itself.", "bad_call")
        longest = tariff.longest_output
        usual = sum(self._recent) // len(self._recent) if self._recent else FIRST_OUTPUT
        least = min(request.least_output_tokens * request.choices, longest)
        expected = tariff.amount(max(least, min(usual, longest)))
        reserved = await self._budget.reserve(
            expected,
            least=tariff.amount(least),
            most=tariff.amount(longest),
            patience_sec=self._patience_sec,
        )
        if isinstance(reserved, Refused):
            return NotGranted(reserved.message, "over_budget" if reserved.is_spent else "upstream_away")
        allowed = tariff.longest(reserved.most, longest)
        clamp = None if allowed >= longest else max(least, allowed)
        return BudgetGrant(
            reserved, tariff, self._recent, clamp, covered=allowed, expected=expected.least(reserved.most)
        )

    def left(self) -> Amount:
        return self._budget.own_left()


class BudgetGrant:
    """Implements ``Grant``: one call's reservation."""

    def __init__(
        self,
        reservation: Reservation,
        tariff: _Tariff,
        recent: deque[int],
        most_output_tokens: int | None,
        *,
        covered: int,
        expected: Amount,
    ) -> None:
        """``covered``: tokens of output that the reservation covers. A stream below that need not be priced.
        ``expected``: the price of one try."""
        self._reservation = reservation
        self._tariff = tariff
        self._recent = recent
        self.most_output_tokens = most_output_tokens
        self._covered = covered
        self._expected = expected - Amount(calls=expected.calls)  # all tries are one call
        self._lost = NOTHING
        self._seen = 0

    def allows(self, output_tokens: int) -> bool:
        self._seen = output_tokens
        if output_tokens <= self._covered and not self._reservation.is_settled:
            return True
        if not self._reservation.stretch(self._lost + self._tariff.amount(output_tokens)):
            return False
        self._covered = max(output_tokens, self._still_covered())
        return True

    def lose(self) -> None:
        self._lost += self._expected

    def allows_another(self) -> bool:
        if not self._reservation.stretch(self._lost + self._expected):
            return False
        self._covered = self._still_covered()
        return True

    def _still_covered(self) -> int:
        return self._tariff.longest(self._reservation.most - self._lost, LONGEST_OUTPUT)

    def settle(self, usage: CallUsage, cost_usd: float | None) -> None:
        self._recent.append(usage.output_tokens or 0)
        try:
            used = _amount(usage, self._tariff.dollars(usage) if cost_usd is None else cost_usd)
            self._reservation.settle(self._lost + used)
        except ValueError:  # no call can cost that, so the figure does not count
            self.settle_unknown()

    def settle_unknown(self) -> None:
        """At least what its stream had cost so far."""
        with suppress(BudgetUnknown):  # what it used counts all the same
            self._reservation.stretch(self._lost + self._expected.most(self._tariff.amount(self._seen)))
        self._reservation.settle_unknown()

    def cancel(self) -> None:
        if self._lost:
            self._reservation.settle(self._lost + Amount(calls=1))
        else:
            self._reservation.release()


def _amount(usage: CallUsage, dollars: float | None) -> Amount:
    return Amount.of(dollars or 0.0, usage.total, 1)
