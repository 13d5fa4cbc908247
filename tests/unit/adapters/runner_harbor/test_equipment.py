"""What an agent makes of its equipment once its sandbox is known: the network, a door, or the key if it may go in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harbor.agents.installed.codex import Codex
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.adapters.model_prices import ModelPrices
from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.spending import Spending
from seatrial.agents.inside import NO_KEY
from seatrial.domain.job import AgentSpec
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.errors import SetupProblem
from seatrial.scripted_models.server import ScriptedModels
from tests.unit.adapters.runner_harbor.test_equip import CODEX, KEY, HostAgent, order_of

pytestmark = pytest.mark.filterwarnings("ignore")


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
