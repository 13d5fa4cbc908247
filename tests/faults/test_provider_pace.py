"""Many agents against a provider with a real capacity, through terminus-2's model client over HTTP.

Two workers share a store. With the pace all agents get their answers; without it a good part ends as an LLM error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from harbor.agents.terminus_2 import Terminus2

from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.agents.model_retries import CallPace, RetryingModel, Timing, retry_model_calls
from seatrial.engine.clock import system_clock
from seatrial.engine.model_patience import ModelHealth, RetryLimits
from seatrial.engine.provider_pace import EVERY_SEC, ProviderPace
from seatrial.errors import ModelFault
from seatrial.sandboxes.own_time import OwnTime
from seatrial.scripted_models.server import Capacity, ScriptedModels
from tests.waiting import LIMIT_SEC, eventually

# LiteLLM's types make pydantic warn on first use.
pytestmark = pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning")

CALLS = 2
PATIENCE = RetryLimits(limit_sec=4.0)
"""In refusals, see ``impatient``: short, so that the crowd without a pace loses it soon."""
NAME = "openai/give-up"


@asynccontextmanager
async def two_workers(folder: Path) -> AsyncIterator[list[ProviderPace]]:
    url = f"sqlite:///{folder / 'seatrial.db'}"
    await upgrade(url)
    async with SqlStore.at(url) as store:
        workers = [ProviderPace(store.pace, f"worker-{number}", system_clock) for number in range(2)]

        async def sync(worker: ProviderPace) -> None:
            while True:
                await worker.sync()
                await asyncio.sleep(EVERY_SEC)

        syncing = [asyncio.create_task(sync(worker)) for worker in workers]
        try:
            yield workers
        finally:
            for task in syncing:
                task.cancel()
            await asyncio.gather(*syncing, return_exceptions=True)


@dataclass
class Ended:
    finished: int
    faults: int
    health: list[ModelHealth]


def impatient(agent: Terminus2, pace: CallPace | None) -> ModelHealth:
    """Patience is counted in refusals of a call and not in seconds, which a busy machine makes longer."""
    health = ModelHealth()
    timing = Timing(clock=lambda: float(health.faults.total()))
    model = RetryingModel(agent._llm, PATIENCE, key="k", pace=pace, timing=timing)
    model.health = health
    agent._llm = model
    return health


async def crowd(models: ScriptedModels, agents: int, workers: list[ProviderPace], folder: Path) -> Ended:
    healths: list[ModelHealth] = []

    async def work(number: int) -> bool:
        agent = Terminus2(logs_dir=folder, model_name=NAME, api_base=models.base_url, suppress_max_turns_warning=True)
        healths.append(impatient(agent, CallPace(workers[number % len(workers)], NAME) if workers else None))
        try:
            for _ in range(CALLS):
                await agent._llm.call("hello", message_history=[])
        except ModelFault:
            return False
        return True

    ended = await asyncio.gather(*(work(number) for number in range(agents)))
    return Ended(sum(ended), len(ended) - sum(ended), healths)


@pytest.mark.parametrize(("agents", "at_once"), [(60, 10), pytest.param(500, 20, marks=pytest.mark.long)])
async def test_a_crowd_finishes_with_the_pace_and_not_without(agents: int, at_once: int, tmp_path: Path) -> None:
    capacity = Capacity(at_once=at_once, seconds=0.7, retry_after_sec=1.0)
    async with ScriptedModels(capacity=capacity) as models, two_workers(tmp_path) as workers:
        paced = await crowd(models, agents, workers, tmp_path)
        refused = models.refused
    async with ScriptedModels(capacity=capacity) as crowded:
        without = await crowd(crowded, agents, [], tmp_path)
    assert (paced.finished, paced.faults) == (agents, 0)
    assert without.faults >= agents // 5, "a good part loses its patience"
    assert refused / paced.finished < crowded.refused / max(1, without.finished), "and asks more often for less"
    assert sum(health.pace_wait_sec for health in paced.health) > 0
    assert all(health.pace_wait_sec == 0 for health in without.health)


async def test_waiting_for_a_turn_is_not_the_agents_time(tmp_path: Path) -> None:
    """The agent's clock stands still while its call waits; by a setting it runs."""
    async with ScriptedModels(capacity=Capacity(at_once=1, seconds=0.0)) as models, two_workers(tmp_path) as workers:
        warm = await crowd(models, 1, workers, tmp_path)
        assert warm.finished == 1
        agent = Terminus2(logs_dir=tmp_path, model_name=NAME, api_base=models.base_url, suppress_max_turns_warning=True)
        health = retry_model_calls(agent, RetryLimits(), key="k", pace=CallPace(workers[0], NAME))
        turn = await workers[0].take(NAME)
        began = time.monotonic()
        turn.refused(3.0)
        turn.end()
        async with OwnTime(LIMIT_SEC) as limit:
            calling = asyncio.create_task(agent._llm.call("hello", message_history=[]))
            await eventually(lambda: limit._stops or calling.done(), "the call waits for its turn")
            rest = 2.9 - (time.monotonic() - began)
            await calling
        assert time.monotonic() - began >= 2.9, "the pause is kept"
        assert limit.waited_sec >= rest and health.pace_wait_sec >= rest
        assert health.lost_sec == 0 and health.spoils_timeout(1.0) is None

        turn = await workers[0].take(NAME)
        turn.refused(60.0)
        turn.end()
        counted = CallPace(workers[0], NAME, stops_clock=False)
        health = retry_model_calls(agent, RetryLimits(), key="k", pace=counted)
        with pytest.raises(TimeoutError):
            async with OwnTime(0.5):
                await agent._llm.call("hello", message_history=[])
        assert "waited for their turn" in (health.interrupted or ""), "then the service is to blame, as before"
