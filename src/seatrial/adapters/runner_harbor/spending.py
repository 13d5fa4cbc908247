"""What the model calls of an order cost, and what they may cost. ``wiring`` puts it together, ``equip.py`` asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from seatrial.domain.model_calls.prices import NamedPrice
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.budgets.trial_budget import TrialBudget
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.gateway.call_budget import CallBudget
from seatrial.gateway.spending import TrialCallBudget
from seatrial.ports.runner import Order

PriceOf = Callable[[str], NamedPrice | None]
CallBudgetOf = Callable[[Order], AbstractContextManager[CallBudget | None]]


@dataclass(frozen=True, slots=True)
class Spending:
    """What calls cost, and what they may cost."""

    rules: BudgetRules | None = None
    price_of: PriceOf = lambda model: None
    call_budget_of: CallBudgetOf | None = None

    def cap_on(self, order: Order) -> str:
        return self.rules.cap_on(order.job) if self.rules is not None else ""

    def in_dollars(self, order: Order) -> bool:
        return self.rules is not None and bool(self.rules.dollar_cap_on(order.job))


@contextmanager
def call_budget_of(order: Order, budgets: Budgets, rules: BudgetRules) -> Iterator[CallBudget]:
    """The budget of a try. A job whose caller chose the model's address is not paid by this installation, and does not
    count for its day."""
    trial, job = order.trial, order.job
    with TrialBudget(budgets, trial.id, trial.try_number, trial.job_id, job.budget, job.own_keys) as budget:
        yield TrialCallBudget(budget, in_dollars=bool(rules.dollar_cap_on(job)))
