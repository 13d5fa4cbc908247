"""Refuses a job whose budget could not be kept: a model without a price where a cap is in dollars, and calls that
would not be counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seatrial.domain.agents.catalogue import takes_model
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.budget import Budget, Cap, shown_dollars
from seatrial.engine.jobs.admission import passes_gate
from seatrial.errors import InvalidInput
from seatrial.ports.prices import Prices


@dataclass(frozen=True, slots=True)
class BudgetRules:
    prices: Prices
    day: Cap
    """The cap of this installation for each day."""

    def check(self, spec: JobSpec) -> None:
        """Raises ``InvalidInput`` if calls of the job would pass a cap uncounted."""
        if not spec.calls_providers:
            return
        for index, agent in enumerate(spec.agents):
            if agent.model is not None and takes_model(agent.name):
                self._check_gate(spec, agent, f"agents.{index}")
                self._check_price(spec, agent.model, f"agents.{index}.model")

    def cap_on(self, spec: JobSpec) -> str:
        """Whose cap holds for calls of this job; empty if none does. The day counts what this installation pays."""
        if spec.budget:
            return "The job's budget"
        return "This installation's budget for a day" if self.day and spec.own_keys else ""

    def unpriced(self, spec: JobSpec) -> tuple[str, ...]:
        """Models of the job whose calls cannot be counted in dollars."""
        named = dict.fromkeys(agent.model for agent in spec.agents if agent.model is not None)
        return tuple(model for model in named if not self.prices.has_price(model))

    def dollar_cap_on(self, spec: JobSpec) -> str:
        """The same as ``cap_on``, of caps in dollars only."""
        if spec.budget.in_dollars:
            return "The job's budget"
        return "This installation's budget for a day" if self.day.dollars is not None and spec.own_keys else ""

    def _check_gate(self, spec: JobSpec, agent: AgentSpec, field: str) -> None:
        """The gate counts. Calls past it would cost nothing by the books."""
        if (whose := self.cap_on(spec)) and not passes_gate(spec, agent):
            raise InvalidInput(
                f"{whose} cannot be kept: calls of {agent.name} to {agent.model} do not pass the gate.",
                field=field,
                fix="Choose a provider that the gate speaks to and one of our sandboxes, or run it without a budget.",
            )

    def _check_price(self, spec: JobSpec, model: str, field: str) -> None:
        if (whose := self.dollar_cap_on(spec)) and not self.prices.has_price(model):
            raise InvalidInput(
                f"{whose} is in dollars, and the model {model} has no known price.",
                field=field,
                fix="Choose a model with a price, set the budget in tokens or calls, or have the operator name a price "
                "(SEATRIAL_MODEL_PRICES_FILE).",
            )


def unpriced_warnings(models: Sequence[str]) -> Iterator[str]:
    for model in models:
        yield f"The model {model} has no known price: its cost will not be known, and no cap in dollars can hold."


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
