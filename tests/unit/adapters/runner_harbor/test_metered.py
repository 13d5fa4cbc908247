"""A result tells what the gate counted, whatever an agent says about itself. Reports and comparisons are made of it."""

from __future__ import annotations

from seatrial.adapters.runner_harbor.outcome import metered
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.reports.report import report
from seatrial.domain.result import Spent, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome

CLAIMED = Usage(input_tokens=1, cached_tokens=1, output_tokens=1, cost_usd=0.0, model_calls=1, turns=7)
COUNTED = Usage(
    input_tokens=900, cached_tokens=600, output_tokens=80, reasoning_tokens=30, cost_usd=0.5, model_calls=12, retries=2
)


def test_what_the_gate_counted_replaces_what_the_agent_claims() -> None:
    assert metered(CLAIMED, COUNTED) == COUNTED.model_copy(update={"turns": 7})


def test_an_agent_cannot_claim_a_price_that_nobody_knows() -> None:
    """An agent in a sandbox writes its own trajectory. A cost of nothing would win every comparison of costs."""
    unpriced = COUNTED.model_copy(update={"cost_usd": None})
    assert metered(CLAIMED, unpriced).cost_usd is None


def test_calls_past_the_gate_are_as_the_agent_reports_them() -> None:
    assert metered(CLAIMED, Usage()) == CLAIMED


def test_a_report_has_the_gates_figures_for_each_agent_and_model() -> None:
    agents = (AgentSpec(name="terminus-2", model="openai/m"), AgentSpec(name="codex", model="openai/n"))
    task = TaskRef(name="t", digest="sha256:0")
    facts = []
    for agent, calls in zip(agents, (1, 3), strict=True):
        counted = COUNTED.model_copy(update={"input_tokens": 900 * calls, "cost_usd": 0.5 * calls})
        usage = metered(CLAIMED, counted)
        spent = Spent(**{name: getattr(usage, name) for name in Spent.model_fields if name != "seconds"})
        facts.append(
            TrialFact(
                task="t", configuration=agent.label, attempt=1, digest=task.digest, outcome=Outcome.PASSED,
                reward=1.0, seconds=1.0, **spent.model_dump(exclude={"seconds"}),
            )
        )  # fmt: skip
    found = report(facts, spec=JobSpec(tasks=(task,), agents=agents))
    spending = {each.label: each.spending for each in found.configurations}
    for agent, calls in zip(agents, (1, 3), strict=True):
        each = spending[agent.label]
        assert (each.cost_usd, each.input_tokens, each.cached_tokens, each.output_tokens) == (
            0.5 * calls,
            900 * calls,
            600,
            80,
        )


def test_a_count_that_no_store_holds_is_unknown() -> None:
    reported = Usage(input_tokens=1, output_tokens=1, cost_usd=0.5, model_calls=7, turns=3)
    assert metered(reported, Usage()) == reported
    counted = Usage(input_tokens=10, output_tokens=20, model_calls=2, retries=1)
    assert metered(reported, counted) == counted.model_copy(update={"turns": 3}), "no price of the agent's own"
    assert metered(reported, counted.model_copy(update={"input_tokens": 2**70})).input_tokens is None
