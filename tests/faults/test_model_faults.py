"""A model's service that fails, behind terminus-2's real model client (LiteLLM over HTTP): done, or an LLM error.

The ninety seconds of rate limits are played on a clock that runs thirty times faster on both sides.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from harbor.agents.terminus_2 import Terminus2
from harbor.llms.base import ContextLengthExceededError

from seatrial.agents.model_retries import RetryingModel, Timing, retry_model_calls
from seatrial.engine.model_patience import ModelHealth, RetryLimits
from seatrial.errors import ModelFault
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault, FaultPlan
from seatrial.scripted_models.server import ScriptedModels

KEY = "sk-canary-1234567890"
SPEED = 30.0
# LiteLLM's types make pydantic warn on first use.
pytestmark = pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning")


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """LiteLLM imports on its first call; on a busy machine that takes longer than the hangs below."""

    async def call() -> None:
        async with ScriptedModels() as models:
            await terminus(models, Path("unused"))._llm.call("hello", message_history=[], api_key=KEY)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(call())


def terminus(models: ScriptedModels, logs_dir: Path, **options: Any) -> Terminus2:
    options = {"suppress_max_turns_warning": True, **options}
    return Terminus2(logs_dir=logs_dir, model_name="openai/give-up", api_base=models.base_url, **options)


async def fast_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / SPEED)


def fast_clock() -> float:
    return time.monotonic() * SPEED


async def ask(
    plan: FaultPlan, logs_dir: Path, policy: RetryLimits, times: int = 1
) -> tuple[ScriptedModels, ModelHealth]:
    """Asks ``times`` times, one after another, on the fast clock; raises what the agent would see. The plan begins with
    the first request."""
    asked: list[float] = []

    def planned(call: int, at: float) -> Fault | None:
        asked.append(at)
        return plan(call, (at - asked[0]) * SPEED)

    async with ScriptedModels(faults=planned, key=KEY) as models:
        agent = terminus(models, logs_dir)
        # A request that has to be timed out is timed by the real clock.
        policy = policy.model_copy(update={"request_timeout_sec": policy.request_timeout_sec / SPEED})
        model = RetryingModel(agent._llm, policy, key=KEY, timing=Timing(fast_clock, fast_sleep))
        for _ in range(times):
            response = await model.call("hello", message_history=[])
            assert "task_complete" in response.content
    return models, model.health


async def test_without_faults_each_call_is_one_request(tmp_path: Path) -> None:
    models, health = await ask(faults.never, tmp_path, RetryLimits(), times=3)
    assert (models.calls, health.calls, health.requests) == (3, 3, 3)


async def test_ninety_seconds_of_rate_limits_are_waited_out(tmp_path: Path) -> None:
    limits = [Fault(kind="rate_limit", retry_after_sec=20), Fault(kind="rate_limit")]
    plan = faults.share(0.8, limits, seconds=90, seed=26)
    models, health = await ask(plan, tmp_path, RetryLimits(), times=10)
    assert health.calls == 10
    assert health.requests == models.calls > 10
    assert health.faults["RateLimitError"] == models.calls - 10


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="server_error", status=500),
        Fault(kind="server_error", status=502),
        Fault(kind="server_error", status=503, retry_after_sec=5),
        Fault(kind="server_error", status=529),
        Fault(kind="cut"),
        Fault(kind="garbage"),
        Fault(kind="hang"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
async def test_a_passing_fault_is_waited_out_and_a_lasting_one_is_an_llm_error(fault: Fault, tmp_path: Path) -> None:
    hangs = fault.kind == "hang"
    policy = RetryLimits(request_timeout_sec=100) if hangs else RetryLimits()
    models, health = await ask(faults.first([fault, fault]), tmp_path, policy)
    assert models.calls == health.requests >= 3
    assert models.calls == 3 or hangs, "only a timeout may come too early, for an answer on a busy machine"
    with pytest.raises(ModelFault):
        await ask(faults.always(fault), tmp_path, policy.model_copy(update={"limit_sec": 50}))


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honoured_on_the_real_clock(form: Any, tmp_path: Path) -> None:
    limit = Fault(kind="rate_limit", retry_after_sec=3, retry_after_form=form)
    async with ScriptedModels(faults=faults.first([limit])) as models:
        agent = terminus(models, tmp_path)
        health = retry_model_calls(agent, RetryLimits(), key=KEY)
        await agent._llm.call("hello", message_history=[])
    first, second = models.requests
    assert second.at - first.at >= (3 if form == "seconds" else 2)  # a date has no fractions
    assert health.requests == 2


@pytest.mark.parametrize("fault", [Fault(kind="auth"), Fault(kind="refused")], ids=lambda fault: fault.kind)
async def test_a_refusal_is_an_llm_error_after_one_request(fault: Fault, tmp_path: Path) -> None:
    async with ScriptedModels(faults=faults.always(fault)) as models:
        agent = terminus(models, tmp_path)
        retry_model_calls(agent, RetryLimits(), key=KEY)
        for _ in range(3):
            with pytest.raises(ModelFault) as raised:
                await agent._llm.call("hello", message_history=[])
            assert KEY not in str(raised.value)
    assert models.calls == 1


async def test_a_context_too_long_is_left_to_the_agent(tmp_path: Path) -> None:
    with pytest.raises(ContextLengthExceededError):
        await ask(faults.always(Fault(kind="context_length")), tmp_path, RetryLimits())


async def test_options_and_the_key_reach_the_call(tmp_path: Path) -> None:
    async with ScriptedModels(key=KEY) as models:
        agent = terminus(
            models, tmp_path, temperature=0.25, llm_call_kwargs={"top_p": 0.5, "seed": 7, "max_tokens": 99}
        )
        retry_model_calls(agent, RetryLimits(), key=KEY)
        await agent._llm.call("hello", message_history=[], **agent._llm_call_kwargs)
    (call,) = models.requests
    wanted = {"temperature": 0.25, "top_p": 0.5, "seed": 7, "max_tokens": 99}
    assert {name: call.body[name] for name in wanted} == wanted
    assert call.fault is None
