"""What an agent is given for its model: a door and a placeholder. The key is used outside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harbor.agents.installed.codex import Codex
from harbor.llms.lite_llm import LiteLLM
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.adapters.model_prices import ModelPrices
from seatrial.adapters.runner_harbor.equip import Equipment, ModelAccess, Spending
from seatrial.adapters.runner_harbor.outcome import metered
from seatrial.adapters.runner_harbor.runner import graded_over_budget, unless_given_up
from seatrial.agents.inside import NO_KEY
from seatrial.domain.budget import Budget, Cap
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.engine.model_patience import ModelHealth
from seatrial.errors import InvalidInput, ModelFault, SetupProblem, Unsupported
from seatrial.ports.runner import Order
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels

KEY = "sk-canary-of-the-installation"

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


class Place:
    """A sandbox with a network policy, whose namespace can be entered or not."""

    def __init__(self, mode: NetworkMode, *, entered: bool = True) -> None:
        self.network_policy = NetworkPolicy(
            network_mode=mode, allowed_hosts=["a.example"] if mode == "allowlist" else []
        )
        self.variables: dict[str, str] = {}
        self._entered = entered

    @property
    def network_namespace(self) -> None:
        if not self._entered:
            raise SetupProblem("The sandbox's network cannot be entered from here.")

    @contextmanager
    def scoped_exec_env(self, variables: Mapping[str, str]) -> Iterator[None]:
        self.variables = dict(variables)
        yield


class InstalledAgent:
    def __init__(self) -> None:
        self._extra_env: dict[str, str] = {}
        self.options = SimpleNamespace()

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


def test_the_gates_count_replaces_the_agents_own() -> None:
    reported = Usage(input_tokens=1, output_tokens=1, cost_usd=0.5, model_calls=7, turns=3)
    assert metered(reported, Usage()) == reported
    counted = Usage(input_tokens=10, output_tokens=20, model_calls=2, retries=1)
    assert metered(reported, counted) == counted.model_copy(update={"turns": 3}), "no price of the agent's own"
    assert metered(reported, counted.model_copy(update={"input_tokens": 2**70})).input_tokens is None


def test_an_agent_whose_last_call_got_no_answer_has_not_failed() -> None:
    failed, passed = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}), Result(outcome=Outcome.PASSED)
    gone = ModelHealth(given_up=ModelFault("The model's service failed 3 times within 9 s: HTTP 503"))
    assert unless_given_up(failed, gone).cause is Cause.LLM and "HTTP 503" in unless_given_up(failed, gone).message
    assert unless_given_up(passed, gone) == passed and unless_given_up(failed, ModelHealth()) == failed


def test_a_trial_over_its_budget_is_graded() -> None:
    voided = Result(outcome=Outcome.ERROR, cause=Cause.LLM, rewards={"reward": 0.0}, message="no credit")
    assert graded_over_budget(voided).outcome is Outcome.FAILED and graded_over_budget(voided).cause is None
    without = Result(outcome=Outcome.ERROR, cause=Cause.LLM)
    assert graded_over_budget(without) == without


@pytest.mark.parametrize(
    ("mode", "online"), [(NetworkMode.PUBLIC, True), (NetworkMode.NO_NETWORK, False), (NetworkMode.ALLOWLIST, False)]
)
@pytest.mark.parametrize("name", ["terminus-2", "codex"])
async def test_the_provider_reaches_what_the_sandbox_reaches(
    tmp_path: Path, name: str, mode: NetworkMode, online: bool
) -> None:
    """Nothing before the sandbox is known, and each step's own network afterwards."""
    async with ScriptedModels() as models, ModelAccess() as access, AsyncExitStack() as doors:
        agent = AgentSpec(name=name, model="openai/give-up", options={"api_base": models.base_url})
        equipment = await access.equip(order_of(tmp_path, agent, OPENAI_API_KEY=KEY), doors)
        assert equipment.routes is not None and not equipment.routes.online
        played: Any = HostAgent(equipment) if name == "terminus-2" else InstalledAgent()
        equipment.hand_to(played)
        for place, expected in ((Place(mode), online), (Place(NetworkMode.NO_NETWORK), False)):
            await played.run(instruction="", environment=place, context=None)
            assert equipment.routes.online is expected


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


@pytest.mark.parametrize("online", [True, False])
async def test_codex_offers_none_either_where_only_the_sandbox_knows_that_it_is_offline(
    tmp_path: Path, online: bool
) -> None:
    """By the operator's default, or by the task's compose file."""
    codex = Codex(logs_dir=tmp_path, model_name="openai/a", web_search="live")
    async with ModelAccess() as access, AsyncExitStack() as doors:
        equipment = await access.equip(order_of(tmp_path, CODEX, OPENAI_API_KEY=KEY), doors)
        equipment._goes_online(codex, online)
    assert ("web_search=live" in codex.build_cli_flags()) is online
    assert ["web search" in note for note in equipment.notes] == [True] * (not online)


CODEX = AgentSpec(name="codex", model="openai/a")


async def test_where_a_sandbox_cannot_be_entered_a_key_goes_in_if_it_may_and_the_trial_says_so(tmp_path: Path) -> None:
    async with ModelAccess() as access, AsyncExitStack() as doors:
        allowed = await access.equip(order_of(tmp_path, CODEX, OPENAI_API_KEY=KEY), doors, "docker")
        agent: Any = InstalledAgent()
        allowed.hand_to(agent)
        assert not allowed.has_key_inside
        place = Place(NetworkMode.PUBLIC, entered=False)
        await agent.run(instruction="", environment=place, context=None)
    assert place.variables == {"OPENAI_API_KEY": KEY} == agent._extra_env
    assert allowed.has_key_inside and any("not counted" in note for note in allowed.notes)


@pytest.mark.parametrize("why", ["the operator does not allow it", "a budget holds"])
async def test_otherwise_it_stays_outside_and_the_agent_does_not_run(tmp_path: Path, why: str) -> None:
    budget = Budget(trial=Cap(calls=5)) if why == "a budget holds" else None
    order = replace(order_of(tmp_path, CODEX, budget=budget, OPENAI_API_KEY=KEY), keys_may_enter=budget is not None)
    async with ModelAccess(spending=Spending(BudgetRules(ModelPrices(), Cap()))) as access, AsyncExitStack() as doors:
        equipment = await access.equip(order, doors, "docker")
        agent: Any = InstalledAgent()
        equipment.hand_to(agent)
        place = Place(NetworkMode.PUBLIC, entered=False)
        with pytest.raises(SetupProblem, match="cannot be entered"):
            await agent.run(instruction="", environment=place, context=None)
        assert place.variables == {} == agent._extra_env and not equipment.has_key_inside
        await agent.run(instruction="", environment=Place(NetworkMode.PUBLIC), context=None)  # where it can be
        assert agent._extra_env["OPENAI_API_KEY"] == NO_KEY


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
