"""Record and replay over real HTTP: the same answers, the same counts, and nobody is asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.model_calls.model_call import CostBy, ModelCall
from seatrial.domain.model_calls.prices import NamedPrice, Price, Rates
from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import RECORD_FILE, TOKENS_FILE, Replay
from seatrial.gateway.replay import CallReplay
from seatrial.gateway.routes import Route
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels
from tests.gate_doors import KEY, OpenDoor, answer, open_door, provider, request, route, status
from tests.waiting import eventually

PRICE = NamedPrice(price=Price(rates=Rates(input=1e-6, output=2e-6)), by=CostBy.OPERATOR)
HELLO = {"model": "give-up", "messages": [{"role": "user", "content": "hello"}]}
STREAM = {**HELLO, "stream": True}
USAGE = {**STREAM, "stream_options": {"include_usage": True}}


def way(models: ScriptedModels) -> Route:
    return replace(route(models.base_url, "openai/give-up"), price=PRICE)


async def call(door: OpenDoor, content: dict[str, Any]) -> bytes:
    return await door.send(request(body=json.dumps(content).encode()))


async def opened(folder: Path, miss: ReplayMiss = ReplayMiss.ERROR) -> CallReplay:
    return await CallReplay.open(Replay(trial=7, miss=miss), folder / RECORD_FILE, [KEY])


def folders(parent: Path) -> tuple[Path, Path]:
    for name in ("first", "second"):
        (parent / name).mkdir()
    return parent / "first", parent / "second"


def body_of(told: bytes) -> bytes:
    """The body, without the lengths of its pieces."""
    head, _, body = told.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return body
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole, body = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return whole


def counted(calls: list[ModelCall]) -> list[object]:
    return [(each.usage, each.status, each.finish_reason, each.streamed, each.request_digest) for each in calls]


async def test_a_replay_answers_and_counts_the_same_without_the_provider(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    asked: list[dict[str, Any]] = [HELLO, STREAM, USAGE, HELLO]
    async with ScriptedModels(key=KEY) as models, open_door(first, way(models), full=True) as door:
        recorded = [await call(door, each) for each in asked]
    assert (models.calls, [each.recorded for each in door.noted()]) == (4, [True] * 4)
    keyless = replace(way(models), headers={})
    async with open_door(second, keyless, replay=await opened(first)) as again:
        replayed = [await call(again, each) for each in asked]
    assert models.calls == 4
    assert [body_of(each) for each in replayed] == [body_of(each) for each in recorded]
    assert [each.partition(b"\r\n")[0] for each in replayed] == [each.partition(b"\r\n")[0] for each in recorded]
    assert counted(again.noted()) == counted(door.noted())
    assert {(each.replayed, each.cost_usd, each.tries) for each in again.noted()} == {(True, 0.0, 0)}
    assert [each.saved_usd for each in again.noted()] == [each.cost_usd for each in door.noted()]
    told, usage = again.calls.replayed, again.calls.usage
    assert told is not None and (told.trial, told.hits, told.misses) == (7, 4, 0)
    assert told.saved_usd == pytest.approx(door.calls.usage.cost_usd) and usage.cost_usd == 0.0
    assert usage.model_calls == 4 and usage.input_tokens == door.calls.usage.input_tokens and usage.retries == 0


async def test_a_miss_is_an_error_of_the_provider_that_says_where_it_differs(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    async with ScriptedModels() as models, open_door(first, way(models), full=True) as door:
        await call(door, HELLO)
    other = {**HELLO, "messages": [{"role": "user", "content": "hello again"}]}
    async with open_door(second, way(models), replay=await opened(first)) as again:
        told = await call(again, other)
        later = await call(again, HELLO)
    assert status(told) == status(later) == 404 and models.calls == 1
    error = json.loads(body_of(told))["error"]
    assert error["code"] == "replay_miss"
    assert 'messages[0].content: recorded "hello", now "hello again"' in error["message"]
    assert again.calls.replay is not None and again.calls.replay.failure == error["message"]
    refused = again.noted()[0]
    assert (refused.tries, refused.replayed, refused.error) == (0, False, error["message"])
    assert again.calls.usage.model_calls is None  # nothing was answered


async def test_live_misses_are_asked_counted_and_paid(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    async with ScriptedModels(key=KEY) as models:
        async with open_door(first, way(models), full=True) as door:
            await call(door, HELLO)
        replay = await opened(first, ReplayMiss.LIVE)
        async with open_door(second, way(models), replay=replay) as again:
            hit = await call(again, HELLO)
            live = await call(again, STREAM)
    assert (status(hit), status(live), models.calls) == (200, 200, 2)
    one, two = again.noted()
    assert (one.replayed, one.cost_usd, two.replayed, two.tries) == (True, 0.0, False, 1) and two.cost_usd
    told = again.calls.replayed
    assert told is not None and (told.hits, told.misses) == (1, 1)


async def test_errors_are_replayed_as_they_were(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    fault = faults.first([Fault(kind="context_length"), Fault(kind="cut")])
    async with ScriptedModels(faults=fault) as models, open_door(first, way(models), full=True) as door:
        recorded = [await call(door, each) for each in (HELLO, STREAM, HELLO)]
    async with open_door(second, way(models), replay=await opened(first)) as again:
        replayed = [await call(again, each) for each in (HELLO, STREAM, HELLO)]
    assert [status(each) for each in recorded] == [400, 200, 200] and models.calls == 3
    assert [body_of(each) for each in replayed] == [body_of(each) for each in recorded]
    assert [each.error for each in again.noted()] == [each.error for each in door.noted()]
    assert again.noted()[1].error is not None and "broke off" in again.noted()[1].error


async def test_a_service_that_stayed_away_stays_away(tmp_path: Path) -> None:
    """A trial that the model's service failed is no failure of the agent, in its replay neither."""
    first, second = folders(tmp_path)
    async with ScriptedModels() as models:
        gone = way(models)
    async with open_door(first, gone, full=True) as door:
        recorded = await call(door, HELLO)
    async with open_door(second, gone, replay=await opened(first)) as again:
        replayed = await call(again, HELLO)
    assert body_of(replayed) == body_of(recorded)
    assert door.calls.health.given_up is not None and again.calls.health.given_up is not None


async def test_calls_that_only_count_tokens_are_replayed_too(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    content = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    ask = request("POST /v1/messages/count_tokens HTTP/1.1", body=content)
    async with provider(answer(200, {"input_tokens": 5})) as model:
        claude = route(model.url, "anthropic/m")
        async with open_door(first, claude, full=True) as door:
            await door.send(ask)
        async with open_door(second, claude, replay=await opened(first)) as again:
            assert json.loads(body_of(await again.send(ask))) == {"input_tokens": 5}
        assert len(model.heard) == 1
    assert again.noted() == [] and again.calls.replayed is not None and again.calls.replayed.hits == 1


async def test_an_agent_that_went_away_leaves_no_answer(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    async with provider(waits=True) as model, open_door(first, route(model.url), full=True) as door:
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(request())
        await eventually(lambda: bool(model.heard), "the call reaches the provider")
        writer.close()
        await eventually(lambda: bool(door.noted()), "the call is noted")
    assert door.noted()[0].recorded is False
    async with open_door(second, route(model.url), replay=await opened(first)) as again:
        assert status(await again.send(request())) == 404


async def test_a_replay_can_be_recorded_and_replayed(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    (third := tmp_path / "third").mkdir()
    async with ScriptedModels() as models, open_door(first, way(models), full=True) as door:
        recorded = await call(door, STREAM)
    async with open_door(second, way(models), full=True, replay=await opened(first)) as again:
        await call(again, STREAM)
    async with open_door(third, way(models), replay=await opened(second)) as last:
        assert body_of(await call(last, STREAM)) == body_of(recorded)


async def test_full_records_keep_the_bodies_without_secrets(tmp_path: Path) -> None:
    secret = "sk-of-somebody-else"
    sent = {**HELLO, "messages": [{"role": "user", "content": f"my key is {secret}"}]}
    async with ScriptedModels() as models, open_door(tmp_path, way(models), full=True, secrets=[secret]) as door:
        await call(door, sent)
        await call(door, STREAM)
    kept = (tmp_path / RECORD_FILE).read_bytes()
    assert secret.encode() not in kept and b"my key is [REDACTED]" in kept and b"[DONE]" in kept
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD_FILE, "calls.jsonl"]


async def test_without_a_record_no_bodies_are_kept(tmp_path: Path) -> None:
    async with ScriptedModels() as models, open_door(tmp_path, way(models)) as door:
        await call(door, HELLO)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.jsonl"] and door.noted()[0].recorded is None


async def test_token_ids_and_logprobs_are_kept_streamed_or_not_and_replayed(tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    wanted = {"logprobs": True, "return_token_ids": True}
    asked: list[dict[str, Any]] = [{**HELLO, **wanted}, {**STREAM, **wanted}, HELLO]
    async with ScriptedModels() as models, open_door(first, way(models), full=True) as door:
        recorded = [await call(door, each) for each in asked]
    async with open_door(second, way(models), replay=await opened(first)) as again:
        assert [body_of(await call(again, each)) for each in asked] == [body_of(each) for each in recorded]
    whole, streamed = [json.loads(line) for line in (first / TOKENS_FILE).read_bytes().splitlines()]
    given = json.loads(body_of(recorded[0]))
    (choice,) = whole["choices"]
    assert choice["completion_token_ids"] == given["choices"][0]["token_ids"] and len(choice["logprobs"]) > 10
    assert whole["prompt_token_ids"] == given["prompt_token_ids"] and (whole["call"], streamed["call"]) == (1, 2)
    assert streamed["choices"] == whole["choices"]  # 40 characters of a piece are whole tokens
    assert (second / TOKENS_FILE).read_bytes() == (first / TOKENS_FILE).read_bytes()
    assert [each.tokens_kept for each in door.noted()] == [True, True, None]
