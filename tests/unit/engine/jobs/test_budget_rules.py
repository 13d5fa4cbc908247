"""Where a cap is in dollars, every model has a price; a job without such a cap may use any."""

from __future__ import annotations

import pytest

from seatrial.adapters.model_prices import ModelPrices
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.task import TaskRef
from seatrial.engine.jobs.budget_rules import BudgetRules, budget_warnings
from seatrial.errors import InvalidInput

UNPRICED = "openai/my-own-model"
PRICED = "openai/gpt-4o"


class OnePrice:
    def has_price(self, model: str) -> bool:
        return model == PRICED


def a_spec(model: str | None, budget: Budget | None = None, *, own_keys: bool = True) -> JobSpec:
    agents = (AgentSpec(name="oracle"), AgentSpec(name="terminus-2", model=model))
    tasks = (TaskRef(name="hello", digest=f"sha256:{0:064x}"),)
    return JobSpec(tasks=tasks, agents=agents, budget=budget or Budget(), own_keys=own_keys)


@pytest.mark.parametrize(
    ("budget", "day"),
    [
        (Budget(job=Cap(dollars=5)), Cap()),
        (Budget(trial=Cap(dollars=5, tokens=9)), Cap()),
        (Budget(), Cap(dollars=100)),
        (Budget(job=Cap(calls=5)), Cap(dollars=100)),
    ],
)
def test_a_model_without_a_price_is_refused_where_a_cap_is_in_dollars(budget: Budget, day: Cap) -> None:
    rules = BudgetRules(OnePrice(), day)
    with pytest.raises(InvalidInput) as refusal:
        rules.check(a_spec(UNPRICED, budget))
    assert refusal.value.field == "agents.1.model" and UNPRICED in refusal.value.message
    rules.check(a_spec(PRICED, budget))
    rules.check(a_spec(None, budget))
    rules.check(a_spec(UNPRICED, budget).model_copy(update={"replay": Replay(trial=1)}))  # it costs nothing


PAST_THE_GATE = [
    (AgentSpec(name="terminus-2", model="bedrock/claude"), "auto"),
    (AgentSpec(name="dspy-rlm", model=PRICED), "auto"),
    (AgentSpec(name="codex", model=PRICED), "harbor:docker"),
    (AgentSpec(name="codex", model="cohere/command"), "oci"),
]
THROUGH_THE_GATE = [
    (AgentSpec(name="terminus-2", model=PRICED), "harbor:docker"),
    (AgentSpec(name="dspy-rlm", model=PRICED, options={"api_base": "https://models.example/v1"}), "auto"),
    (AgentSpec(name="codex", model=PRICED), "docker"),
    (AgentSpec(name="codex", model="hosted_vllm/mine"), "auto"),
]


@pytest.mark.parametrize(("agent", "sandbox"), PAST_THE_GATE)
@pytest.mark.parametrize("day", [Cap(), Cap(calls=9)], ids=["job", "day"])
def test_calls_that_nobody_would_count_are_refused_where_a_cap_holds(agent: AgentSpec, sandbox: str, day: Cap) -> None:
    budget = Budget() if day else Budget(trial=Cap(tokens=9))
    spec = a_spec(None, budget).model_copy(update={"agents": (agent,), "sandbox": sandbox})
    with pytest.raises(InvalidInput, match="do not pass the gate"):
        BudgetRules(OnePrice(), day).check(spec)
    BudgetRules(OnePrice(), Cap()).check(spec.model_copy(update={"budget": Budget()}))


@pytest.mark.parametrize(("agent", "sandbox"), THROUGH_THE_GATE)
def test_calls_that_the_gate_counts_are_taken(agent: AgentSpec, sandbox: str) -> None:
    spec = a_spec(None, Budget(job=Cap(tokens=9))).model_copy(update={"agents": (agent,), "sandbox": sandbox})
    BudgetRules(OnePrice(), Cap(calls=9)).check(spec)


@pytest.mark.parametrize("budget", [Budget(), Budget(job=Cap(tokens=5), trial=Cap(calls=5))])
def test_other_caps_take_any_model(budget: Budget) -> None:
    BudgetRules(OnePrice(), Cap(tokens=9, calls=9)).check(a_spec(UNPRICED, budget))


def test_the_day_does_not_count_what_the_installation_does_not_pay() -> None:
    rules = BudgetRules(OnePrice(), Cap(dollars=100))
    rules.check(a_spec(UNPRICED, own_keys=False))
    with pytest.raises(InvalidInput):
        rules.check(a_spec(UNPRICED, Budget(job=Cap(dollars=5)), own_keys=False))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-4o", True),
        ("gpt-4o", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("scripted/shell", True),
        ("openai/my-own-model", False),
        ("groq/gpt-4o", False),
        ("", False),
        ("openai/", False),
    ],
)
def test_prices_are_those_that_litellm_lists(model: str, expected: bool) -> None:
    assert ModelPrices().has_price(model) is expected


def test_an_estimate_above_a_cap_is_said() -> None:
    budget = Budget(job=Cap(dollars=5), trial=Cap(dollars=0.5))
    assert len(list(budget_warnings(budget, 10, 6.0))) == 2
    assert list(budget_warnings(budget, 10, 4.9)) == []
    assert list(budget_warnings(budget, 10, None)) == []
    assert list(budget_warnings(Budget(), 10, 6.0)) == []
