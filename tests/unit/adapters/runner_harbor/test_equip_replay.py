"""What an agent is given for a replay: a door that a record answers, and no budget. A miss voids its grade."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.adapters.runner_harbor.additions import with_replay
from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.spending import Spending
from seatrial.domain.job import AgentSpec
from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import RECORD_FILE, Replay
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.errors import SetupProblem, Unsupported
from seatrial.gateway.recording import Recording
from seatrial.gateway.wire import digest_of, read_object
from seatrial.ports.runner import Order
from tests.unit.adapters.runner_harbor.test_equip import order_of
from tests.waiting import LIMIT_SEC

ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
AGENT = AgentSpec(name="terminus-2", model="openai/m", options={"api_base": "http://127.0.0.1:9/v1"})
PASSED = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})

pytestmark = pytest.mark.filterwarnings("ignore")


def replaying(folder: Path, agent: AgentSpec = AGENT, miss: ReplayMiss = ReplayMiss.ERROR) -> Order:
    """An order whose record answers one request."""
    recording = Recording(folder, [])
    call = recording.call("/v1/chat/completions", digest_of(read_object(ASKED)), ASKED.decode())
    call.whole(200, (("content-type", "application/json"),), b'{"choices": []}')
    call.end(None, over_budget=False, broken=False, given_up=False)
    recording.close()
    record = (folder / RECORD_FILE).rename(folder / "replay.jsonl")
    order = order_of(folder, agent)
    job = order.job.model_copy(update={"replay": Replay(trial=7, miss=miss)})
    return replace(order, job=job, replay=record)


async def ask(address: str, body: bytes) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        return await client.post(f"{address}/chat/completions", content=body)


class CallBudgets:
    """Counts how often a budget was opened."""

    def __init__(self) -> None:
        self.opened = 0

    @contextmanager
    def of(self, order: Order) -> Iterator[None]:
        self.opened += 1
        yield None


async def test_a_record_answers_and_its_file_is_not_one_of_this_try(tmp_path: Path) -> None:
    call_budgets, order = CallBudgets(), replaying(tmp_path)
    async with ModelAccess(spending=Spending(call_budget_of=call_budgets.of)) as access, AsyncExitStack() as doors:
        made = await access.equip(order, doors)
        told = await ask(made.agent.kwargs["api_base"], ASKED)
        result = with_replay(PASSED, made)
    assert (told.status_code, told.json()) == (200, {"choices": []})
    assert call_budgets.opened == 0 and not (tmp_path / "replay.jsonl").exists()
    assert result.replay is not None and (result.replay.trial, result.replay.hits, result.replay.misses) == (7, 1, 0)
    assert (result.outcome, result.cause, result.marks) == (Outcome.PASSED, None, (Mark.REPLAYED,))


async def test_a_miss_is_an_error_with_its_own_cause(tmp_path: Path) -> None:
    order = replaying(tmp_path)
    async with ModelAccess() as access, AsyncExitStack() as doors:
        made = await access.equip(order, doors)
        told = await ask(made.agent.kwargs["api_base"], ASKED.replace(b"hello", b"goodbye"))
        result = with_replay(PASSED, made)
    assert told.status_code == 404 and 'recorded "hello", now "goodbye"' in told.text.replace("\\", "")
    assert (result.outcome, result.cause) == (Outcome.ERROR, Cause.REPLAY)
    assert "First difference to its call 1, at messages[0].content" in result.message


async def test_live_misses_have_a_budget(tmp_path: Path) -> None:
    call_budgets, order = CallBudgets(), replaying(tmp_path, miss=ReplayMiss.LIVE)
    async with ModelAccess(spending=Spending(call_budget_of=call_budgets.of)) as access, AsyncExitStack() as doors:
        made = await access.equip(order, doors)
        assert with_replay(PASSED, made).outcome is Outcome.PASSED
    assert call_budgets.opened == 1


async def test_without_its_record_a_replay_does_not_run(tmp_path: Path) -> None:
    order = replace(replaying(tmp_path), replay=None)
    async with ModelAccess() as access, AsyncExitStack() as doors:
        with pytest.raises(SetupProblem, match="record of trial 7"):
            await access.equip(order, doors)


@pytest.mark.parametrize(
    ("agent", "sandbox"),
    [
        (AgentSpec(name="terminus-2", model="bedrock/m"), "oci"),
        (AgentSpec(name="mini-swe-agent", model="openai/m"), "harbor:docker"),
    ],
    ids=["a provider without a route", "a foreign sandbox"],
)
async def test_what_does_not_pass_the_gate_cannot_be_replayed(tmp_path: Path, agent: Any, sandbox: str) -> None:
    order = replaying(tmp_path, agent)
    async with ModelAccess() as access, AsyncExitStack() as doors:
        with pytest.raises(Unsupported, match="cannot be replayed"):
            await access.equip(order, doors, sandbox)


async def test_other_trials_are_not_marked(tmp_path: Path) -> None:
    async with ModelAccess() as access, AsyncExitStack() as doors:
        made = await access.equip(order_of(tmp_path, AGENT), doors)
        assert with_replay(PASSED, made) == PASSED
