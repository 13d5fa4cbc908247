"""What an agent is given for its model: a door and a placeholder. The key is used outside."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from harbor.llms.lite_llm import LiteLLM

from seatrial.adapters.model_prices import ModelPrices
from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.equipment import Equipment
from seatrial.adapters.runner_harbor.spending import Spending
from seatrial.agents.inside import NO_KEY
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Trial
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.errors import InvalidInput, Unsupported
from seatrial.ports.runner import Order
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels

KEY = "sk-canary-of-the-installation"
CODEX = AgentSpec(name="codex", model="openai/a")

pytestmark = pytest.mark.filterwarnings("ignore")


def order_of(
    work_dir: Path,
    agent: AgentSpec,
    own_keys: bool = True,
    budget: Budget | None = None,
    network: str | None = None,
    **secrets: str,
) -> Order:
    ref, now = TaskRef(name="t", digest="sha256:0"), datetime(2026, 1, 1, tzinfo=UTC)
    named = {"agent": agent.name, "model": agent.model}
    return Order(
        trial=Trial(id=1, job_id=1, task=ref, agent_index=0, attempt=1, created_at=now, **named),  # type: ignore[arg-type]
        task=Task(digest=ref.digest, name="t", format=TaskFormat.HARBOR, instruction="", network_mode=network),
        task_dir=work_dir,
        job=JobSpec(tasks=(ref,), agents=(agent,), own_keys=own_keys, budget=budget or Budget()),
        agent=agent,
        work_dir=work_dir,
        secrets=secrets,
    )


class HostAgent:
    """Calls its model as terminus-2 does."""

    def __init__(self, equipment: Equipment) -> None:
        options = equipment.agent.kwargs
        self._llm: Any = LiteLLM(model_name=equipment.agent.model_name, api_base=options["api_base"])

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Works in ``environment``."""


async def test_an_agent_on_the_host_calls_through_the_gate(tmp_path: Path) -> None:
    fault = Fault(kind="rate_limit", retry_after_sec=0.01)
    async with (
        ScriptedModels(key=KEY, faults=faults.first([fault])) as models,
        ModelAccess() as access,
        AsyncExitStack() as doors,
    ):
        agent = AgentSpec(name="terminus-2", model="openai/give-up", options={"api_base": models.base_url})
        equipment = await access.equip(order_of(tmp_path, agent, OPENAI_API_KEY=KEY), doors)
        assert KEY not in equipment.agent.model_dump_json() and models.base_url not in equipment.agent.model_dump_json()
        played: Any = HostAgent(equipment)
        health = equipment.hand_to(played)
        said = await played._llm.call("hello")
    assert said.content and equipment.api_key == NO_KEY
    assert models.requests[-1].headers["authorization"] == f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    assert models.calls == 2 and health.requests == 2 and health.faults == {"HTTP 429": 1}
    assert equipment.calls is not None
    usage = equipment.calls.usage
    assert (usage.model_calls, usage.retries) == (1, 1) and usage.input_tokens and usage.first_token_sec is not None


async def test_an_agent_inside_gets_its_door_when_its_sandbox_is_there(tmp_path: Path) -> None:
    async with ScriptedModels(key=KEY) as models, ModelAccess() as access, AsyncExitStack() as doors:
        agent = AgentSpec(name="codex", model="openai/give-up", options={"api_base": models.base_url})
        equipment = await access.equip(order_of(tmp_path, agent, OPENAI_API_KEY=KEY), doors)
        assert equipment.open_door is not None and "api_base" not in equipment.agent.kwargs
        assert set(equipment.agent.env.values()) == {NO_KEY}, "agents refuse to be made without a key"
        async with equipment.open_door(None, AsyncExitStack) as variables:  # type: ignore[arg-type]
            assert variables["OPENAI_BASE_URL"].startswith("http://127.0.0.1:") and KEY not in str(variables)
            assert variables["OPENAI_BASE_URL"] != models.base_url
            door = variables["OPENAI_BASE_URL"].removesuffix("/v1")
            assert variables["ANTHROPIC_BASE_URL"] == variables["GOOGLE_GEMINI_BASE_URL"] == door, "no other way out"


async def test_models_of_other_formats_are_called_from_the_worker_and_the_trial_says_so(tmp_path: Path) -> None:
    async with ModelAccess() as access, AsyncExitStack() as doors:
        agent = AgentSpec(name="terminus-2", model="bedrock/claude")
        equipment = await access.equip(order_of(tmp_path, agent, AWS_BEARER_TOKEN_BEDROCK=KEY), doors)
    assert equipment.calls is None and equipment.api_key == KEY and "not counted" in equipment.notes[0]


async def test_a_callers_address_is_never_called_past_the_gate(tmp_path: Path) -> None:
    async with ModelAccess() as access, AsyncExitStack() as doors:
        agent = AgentSpec(name="terminus-2", model="azure/gpt", options={"api_base": "http://127.0.0.1:9/v1"})
        with pytest.raises(InvalidInput):
            await access.equip(order_of(tmp_path, agent, own_keys=False), doors)
        ours = await access.equip(order_of(tmp_path, agent), doors)
    assert ours.calls is None


async def test_further_models_of_a_job_share_the_provider_and_nothing_else(tmp_path: Path) -> None:
    agent = AgentSpec(name="codex", model="openai/a", options={"weak_model": "openai/b", "other_model": "ollama/c"})
    async with ModelAccess() as access, AsyncExitStack():
        order = order_of(tmp_path, agent, OPENAI_API_KEY=KEY)
        wanted = await access._wanted(order)
        assert wanted is not None and wanted.route is not None
        others = list(access._others(order, wanted.route))
    assert [(other.litellm_name, other.base, dict(other.headers)) for other in others] == [
        ("openai/b", wanted.route.base, dict(wanted.route.headers))
    ]


@pytest.mark.parametrize(
    ("network", "budget", "off"),
    [
        ("no-network", None, True),
        ("allowlist", None, True),
        (None, Budget(job=Cap(dollars=5)), True),
        ("public", None, False),
        (None, Budget(job=Cap(tokens=5)), False),
    ],
)
async def test_codex_offers_no_web_search_that_the_gate_would_refuse(
    tmp_path: Path, network: str | None, budget: Budget | None, off: bool
) -> None:
    agent = AgentSpec(name="codex", model="openai/a", options={"web_search": "live"})
    async with ModelAccess(spending=Spending(BudgetRules(ModelPrices(), Cap()))) as access, AsyncExitStack() as doors:
        order = order_of(tmp_path, agent, budget=budget, network=network, OPENAI_API_KEY=KEY)
        equipment = await access.equip(order, doors)
    assert equipment.agent.kwargs["web_search"] == ("disabled" if off else "live")
    assert ["web search" in note for note in equipment.notes] == [True] * off


@pytest.mark.parametrize(
    ("agent", "sandbox"),
    [(AgentSpec(name="terminus-2", model="bedrock/claude"), "oci"), (CODEX, "harbor:docker")],
    ids=["another format", "another sandbox"],
)
@pytest.mark.parametrize("day", [Cap(), Cap(tokens=9)], ids=["job", "day"])
async def test_no_call_is_made_past_a_budget(tmp_path: Path, agent: AgentSpec, sandbox: str, day: Cap) -> None:
    capped = None if day else Budget(job=Cap(calls=5))
    keys = {"AWS_BEARER_TOKEN_BEDROCK": KEY, "OPENAI_API_KEY": KEY}
    async with ModelAccess(spending=Spending(BudgetRules(ModelPrices(), day))) as access, AsyncExitStack() as doors:
        with pytest.raises(Unsupported, match="cannot be kept"):
            await access.equip(order_of(tmp_path, agent, budget=capped, **keys), doors, sandbox)
    async with ModelAccess(spending=Spending(BudgetRules(ModelPrices(), Cap()))) as access, AsyncExitStack() as doors:
        free = await access.equip(order_of(tmp_path, agent, **keys), doors, sandbox)
    assert free.calls is None


async def test_a_closed_gate_leaves_no_connection_and_opens_again(tmp_path: Path) -> None:
    async with ScriptedModels(key=KEY) as models, ModelAccess() as access:
        agent = AgentSpec(name="terminus-2", model="openai/give-up", options={"api_base": models.base_url})
        for _ in range(2):
            async with AsyncExitStack() as doors:
                equipment = await access.equip(order_of(tmp_path, agent, OPENAI_API_KEY=KEY), doors)
                played: Any = HostAgent(equipment)
                equipment.hand_to(played)
                assert (await played._llm.call("hello")).content
            gate = await access._open_gate()
            await access.close()
            assert gate._upstream._session.closed
    assert models.calls == 2
