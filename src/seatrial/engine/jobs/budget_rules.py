"""Refuses a job whose budget could not be kept: a model without a price where a cap is in dollars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.domain.budget import Budget, Cap, shown_dollars
from seatrial.domain.job import JobSpec
from seatrial.errors import InvalidInput
from seatrial.ports.prices import Prices

NOT_ENFORCED = "Budgets are stored and checked, and not enforced yet: that needs the gateway for model calls."


@dataclass(frozen=True, slots=True)
class BudgetRules:
    prices: Prices
    day: Cap
    """The cap of this installation for each day."""

    def check(self, spec: JobSpec) -> None:
        """Calls of a model without a price would cost nothing by the books, and so pass every cap in dollars."""
        if not spec.calls_providers or not (whose := self._in_dollars(spec)):
            return
        for index, agent in enumerate(spec.agents):
            if agent.model is not None and not self.prices.has_price(agent.model):
                raise InvalidInput(
                    f"{whose} is in dollars, and the model {agent.model} has no known price.",
                    field=f"agents.{index}.model",
                    fix="Choose a model with a price, or set the budget in tokens or calls.",
                )

    def _in_dollars(self, spec: JobSpec) -> str:
        """Whose cap is in dollars. The day counts only what this installation pays."""
        if spec.budget.in_dollars:
            return "The job's budget"
        return "This installation's budget for a day" if self.day.dollars is not None and spec.own_keys else ""


def budget_warnings(budget: Budget, trials: int, cost_usd: float | None) -> Iterator[str]:
    """What is odd about a budget. ``cost_usd`` is the estimated cost of the whole job."""
    if cost_usd is not None and budget.job.dollars is not None and cost_usd > budget.job.dollars:
        yield (
            f"The job is estimated at {shown_dollars(cost_usd)}, which is above its budget of "
            f"{shown_dollars(budget.job.dollars)}: its last trials would end over budget."
        )
    if cost_usd is not None and budget.trial.dollars is not None and cost_usd > budget.trial.dollars * trials:
        yield (
            f"A trial is estimated at {shown_dollars(cost_usd / trials)}, which is above its budget of "
            f"{shown_dollars(budget.trial.dollars)}."
        )
