"""Calls and their budget: what is reserved, clamped, cut and settled, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.model_calls.budget import Amount, Budget, Cap
from seatrial.domain.model_calls.model_call import CostBy
from seatrial.domain.model_calls.prices import NamedPrice, Price, Rates
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.budgets.trial_budget import Reservation, TrialBudget
from seatrial.engine.clock import uptime
from seatrial.engine.model_patience import RetryLimits
from seatrial.gateway.routes import Route
from seatrial.gateway.spending import TrialCallBudget
from seatrial.testing.memory_store.budgets import MemoryBudgets
from tests.gate_doors import CHAT, HASTY, IMPATIENT, OpenDoor, answer, open_door, provider, request, route, status
from tests.unit.gateway.wire.samples import MESSAGES, REQUESTS, RESPONSES, chunk, gemini_part, typed
from tests.waiting import eventually

PRICE = NamedPrice(price=Price(rates=Rates(input=0.0, output=0.001)), by=CostBy.TABLE)
"""A token of output costs a tenth of a cent."""


def told(output_tokens: int, **more: Any) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": output_tokens, **more}
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    return answer(200, {"id": "x", "model": "m", "choices": [choice], "usage": usage})


@contextmanager
def budget(cap: Cap, elapsed: Callable[[], float] = lambda: 0.0) -> Iterator[TrialBudget]:
    """Its time stands still: nobody exchanges with the store every second here, as a worker does, and without that a
    slice is trusted for five seconds only."""
    budgets = Budgets(MemoryBudgets(), "worker", lambda: datetime.now(UTC), timedelta(seconds=20), elapsed=elapsed)
    with TrialBudget(budgets, 1, 1, 1, Budget(trial=cap)) as opened:
        yield opened


@asynccontextmanager
async def capped(
    folder: Path, url: str, spends: TrialBudget, patience: RetryLimits = IMPATIENT
) -> AsyncIterator[OpenDoor]:
    priced: Route = replace(route(url), price=PRICE)
    async with open_door(folder, priced, call_budget=TrialCallBudget(spends), patience=patience) as door:
        yield door


async def ask(door: OpenDoor, **more: Any) -> bytes:
    return await door.send(request(body=json.dumps({**CHAT, **more}).encode()))


async def test_a_call_is_settled_at_what_it_used(tmp_path: Path) -> None:
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(told(100)) as model, capped(tmp_path, model.url, spends) as door:
            assert status(await ask(door, max_tokens=2000)) == 200
        assert spends.spent == Amount.of(0.1, 110, 1)
    (noted,) = door.noted()
    assert (noted.cost_usd, noted.cost_by, noted.clamped_to) == (0.1, CostBy.TABLE, None)


async def test_the_providers_own_figure_wins(tmp_path: Path) -> None:
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(told(100, cost=0.25)) as model, capped(tmp_path, model.url, spends) as door:
            await ask(door, max_tokens=2000)
        assert spends.spent.dollars == 0.25
    assert door.noted()[0].cost_by is CostBy.PROVIDER


@pytest.mark.parametrize("cap", [Cap(dollars=0.5), Cap(tokens=510), Cap(calls=1)], ids=["dollars", "tokens", "calls"])
async def test_past_the_cap_a_call_is_refused_as_an_empty_account(tmp_path: Path, cap: Cap) -> None:
    with budget(cap) as spends:
        async with provider(told(500)) as model, capped(tmp_path, model.url, spends) as door:
            first = await ask(door, max_tokens=500)
            second = await ask(door, max_tokens=500)
            heard = len(model.heard)
    assert status(first) == 200 and status(second) == 402 and b"insufficient_quota" in second and heard == 1
    assert door.calls.sums.over_budget and door.noted()[1].over_budget and door.noted()[1].tries == 0


async def test_near_the_cap_the_answer_is_clamped(tmp_path: Path) -> None:
    with budget(Cap(dollars=0.3)) as spends:
        async with provider(told(300)) as model, capped(tmp_path, model.url, spends) as door:
            await ask(door, max_tokens=2000)
        assert spends.spent.dollars == 0.3
    (noted,) = door.noted()
    assert noted.clamped_to == 300 and json.loads(model.heard[0].split(b"\r\n\r\n")[1])["max_tokens"] == 300


async def test_an_absurd_limit_is_clamped_like_any_other(tmp_path: Path) -> None:
    with budget(Cap(dollars=0.3)) as spends:
        async with provider(told(300)) as model, capped(tmp_path, model.url, spends) as door:
            assert status(await ask(door, max_tokens=2**40, n=128)) == 200
    assert door.noted()[0].clamped_to is not None


async def test_what_the_provider_refused_costs_nothing(tmp_path: Path) -> None:
    with budget(Cap(dollars=1.0)) as spends:
        async with provider(answer(400, {"error": {}})) as model, capped(tmp_path, model.url, spends) as door:
            assert status(await ask(door, max_tokens=100)) == 400
        assert spends.spent == Amount()


@dataclass
class Stream:
    """What a provider sends in one of the formats. ``begin`` tells one token of output."""

    format: str
    begin: bytes
    piece: bytes
    """100 tokens."""

    def question(self, **more: Any) -> bytes:
        path, body = REQUESTS[self.format]
        asked = {**body, **more} if self.format == "gemini" else {**body, "model": "m", **more}
        for name in ("max_tokens", "max_output_tokens", "generationConfig"):
            asked.pop(name, None)
        if self.format == "messages":
            asked["max_tokens"] = 4000
        target = "/v1beta/models/m:streamGenerateContent?alt=sse" if self.format == "gemini" else path
        return request(f"POST {target} HTTP/1.1", body=json.dumps(asked).encode())


WORDS = "word " * 80
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS}}
STREAMS = [
    Stream("chat", chunk({"role": "assistant"}), chunk({"content": WORDS})),
    Stream("responses", RESPONSES.events[0], typed({"type": "response.output_text.delta", "delta": WORDS})),
    Stream("messages", b"".join(MESSAGES.events[:2]), typed(DELTA)),
    Stream(
        "gemini",
        gemini_part("", promptTokenCount=9, candidatesTokenCount=1),
        gemini_part(WORDS, promptTokenCount=9, candidatesTokenCount=1),
    ),
]
by_stream = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.format)


@asynccontextmanager
async def streaming(
    stream: Stream, pieces: int, passed: asyncio.Event | None = None
) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A provider that sends so many pieces and then waits. Its address, and whether the gate went away.

    With ``passed`` it sends a piece only after the agent got something of those before."""
    gone = asyncio.Event()

    async def until_gone(reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while await reader.read(65536):
                pass
        gone.set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        going = asyncio.create_task(until_gone(reader))
        try:
            for event in chain([stream.begin], repeat(stream.piece, pieces)):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
                if passed is not None:
                    passing = asyncio.create_task(passed.wait())
                    await asyncio.wait((passing, going), return_when=asyncio.FIRST_COMPLETED)
                    passing.cancel()
                    passed.clear()
                if gone.is_set():
                    break
            await going
        except ConnectionError:
            await going
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", gone


async def read_whole(door: OpenDoor, stream: Stream, on_piece: Callable[[], None]) -> bytes:
    """Asks as an agent does, and reads until the gate ends the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(stream.question())
    got = b""
    while piece := await reader.read(65536):
        got += piece
        on_piece()
    writer.close()
    return got


@by_stream
async def test_a_stream_is_cut_at_the_cap(tmp_path: Path, stream: Stream) -> None:
    """The provider would go on for ever, whatever length it was asked for."""
    with budget(Cap(dollars=1.0)) as spends:
        passed = asyncio.Event()
        async with streaming(stream, 10**9, passed) as (url, gone), capped(tmp_path, url, spends) as door:
            got = await read_whole(door, stream, passed.set)
            await gone.wait()  # the gate closed the connection to the provider
            assert 1.0 <= spends.spent.dollars <= 1.2
            refused = await door.send(stream.question())
    assert status(got) == 200 and got.count(b"word word") >= 10 and door.noted()[0].over_budget
    assert status(refused) in (400, 402) and door.noted()[1].tries == 0


@by_stream
async def test_a_stream_that_the_agent_closes_costs_what_it_had(tmp_path: Path, stream: Stream) -> None:
    """No provider tells before the end how long its answer is."""
    with budget(Cap(dollars=0.9)) as spends:
        async with streaming(stream, 9) as (url, gone), capped(tmp_path, url, spends) as door:
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(stream.question())
            got = b""
            while got.count(WORDS.encode()) < 9:
                piece = await reader.read(65536)
                assert piece, "the stream was cut"
                got += piece
            writer.close()
            await gone.wait()
            await eventually(lambda: spends.spent.calls == 1, "the call is settled")
            assert spends.spent.dollars >= 0.9
            refused = await door.send(stream.question())
    assert status(refused) in (400, 402) and door.noted()[1].tries == 0


@by_stream
async def test_a_stream_ends_without_a_mark_if_the_store_does_not_say_what_is_left(
    tmp_path: Path, stream: Stream
) -> None:
    """Half of the budget is reserved for it. It needs more after the store was silent for too long."""
    now, passed = [0.0], asyncio.Event()
    with budget(Cap(dollars=3.0), elapsed=lambda: now[0]) as spends:
        [held] = [held for held in spends._slices() if held.is_capped]
        held.users.add(2)  # another trial may want the other half
        async with streaming(stream, 10**9, passed) as (url, gone), capped(tmp_path, url, spends) as door:

            def passes() -> None:
                now[0] = 60.0
                passed.set()

            got = await read_whole(door, stream, passes)
            await gone.wait()
        assert spends.refused is None and 1.5 <= spends.spent.dollars <= 1.7
    (noted,) = door.noted()
    assert status(got) == 200 and not noted.over_budget and "what is left of the budget" in (noted.error or "")
    assert not door.calls.sums.over_budget and "what is left" in str(door.calls.health.given_up)


async def test_a_request_is_not_repeated_if_the_store_does_not_say_what_is_left(tmp_path: Path) -> None:
    async with provider(CUT, told(50)) as model:
        with budget(Cap(dollars=5.0), elapsed=lambda: 60.0 if model.heard else 0.0) as spends:
            async with capped(tmp_path, model.url, spends, HASTY) as door:
                refused = await ask(door, max_tokens=200)
            assert spends.refused is None and spends.spent.dollars == 0.2, "it may have been answered"
    (noted,) = door.noted()
    assert status(refused) == 400 and b"what is left of the budget" in refused and len(model.heard) == 1
    assert not noted.over_budget and door.calls.health.given_up is not None


async def test_an_answer_that_broke_off_is_settled_at_what_was_expected(tmp_path: Path) -> None:
    given = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 500\r\n\r\ndata: {}\n\n"
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(given) as model, capped(tmp_path, model.url, spends) as door:
            await ask(door, stream=True, max_tokens=200)
        assert spends.spent.dollars == 0.2 and spends.spent.calls == 1


CUT = told(100)[:-10]
LATE = answer(504, {"error": {}})
UNREADABLE = answer(200, b"<html>")


@pytest.mark.parametrize("lost", [CUT, b"", LATE, UNREADABLE], ids=["cut", "no answer", "late proxy", "not JSON"])
async def test_tries_whose_answer_was_lost_count_beside_the_one_that_came(tmp_path: Path, lost: bytes) -> None:
    """The provider has answered them, as far as anybody knows."""
    with budget(Cap(dollars=5.0)) as spends:
        given = (lost, lost, told(50))
        async with provider(*given) as model, capped(tmp_path, model.url, spends, HASTY) as door:
            assert status(await ask(door, max_tokens=200)) == 200
            assert len(model.heard) == 3
        assert spends.spent.dollars == pytest.approx(0.2 + 0.2 + 0.05) and spends.spent.calls == 1
    (noted,) = door.noted()
    assert (noted.cost_usd, noted.tries, noted.lost_tries) == (0.05, 3, 2)


@pytest.mark.parametrize("lost", [CUT, b"", LATE], ids=["cut", "no answer", "late proxy"])
async def test_they_count_when_no_answer_came_at_all(tmp_path: Path, lost: bytes) -> None:
    with budget(Cap(dollars=50.0)) as spends:
        short = RetryLimits(limit_sec=0.05, first_wait_sec=0.01, longest_wait_sec=0.01)
        async with provider(lost) as model, capped(tmp_path, model.url, spends, short) as door:
            assert status(await ask(door, max_tokens=200)) >= 400
        tries = len(model.heard)
        assert spends.spent.dollars == pytest.approx(0.2 * tries) and spends.spent.calls == 1 <= tries
    assert door.noted()[0].tries == door.noted()[0].lost_tries == tries and door.calls.health.given_up is not None


@pytest.mark.parametrize("given", [429, 500, 502, 503, 529])
async def test_tries_that_were_refused_are_free(tmp_path: Path, given: int) -> None:
    with budget(Cap(dollars=5.0)) as spends:
        refused = answer(given, {"error": {}})
        async with (
            provider(refused, refused[:-1], told(50)) as model,
            capped(tmp_path, model.url, spends, HASTY) as door,
        ):
            assert status(await ask(door, max_tokens=200)) == 200 and len(model.heard) == 3
        assert spends.spent.dollars == 0.05
    assert (door.noted()[0].tries, door.noted()[0].lost_tries) == (3, 0)


async def test_so_are_those_that_nobody_heard(tmp_path: Path) -> None:
    with socket.socket() as deaf, budget(Cap(dollars=5.0)) as spends:
        deaf.bind(("127.0.0.1", 0))  # does not listen, and nobody else gets its port meanwhile
        async with capped(tmp_path, f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", spends) as door:
            assert status(await ask(door, max_tokens=200)) >= 400
        assert spends.spent == Amount()


async def test_lost_answers_end_at_the_cap(tmp_path: Path) -> None:
    with budget(Cap(dollars=0.5)) as spends:
        async with provider(CUT) as model, capped(tmp_path, model.url, spends, HASTY) as door:
            refused = await ask(door, max_tokens=200)
            assert status(refused) == 402 and b"insufficient_quota" in refused and len(model.heard) == 2
        assert spends.spent.dollars == 0.4 and spends.refused is not None
    assert door.noted()[0].over_budget and door.noted()[0].tries == door.noted()[0].lost_tries == 2


async def test_an_agent_that_goes_away_between_two_tries_pays_for_those_that_were_sent(tmp_path: Path) -> None:
    slow = RetryLimits(limit_sec=6000.0, first_wait_sec=600.0, longest_wait_sec=600.0)
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(CUT) as model, capped(tmp_path, model.url, spends, slow) as door:
            _, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(request(body=json.dumps({**CHAT, "max_tokens": 200}).encode()))
            await eventually(lambda: door.calls.health.faults.total() == 1, "the call waits for its next try")
            writer.close()
            await eventually(lambda: spends.spent, "the call is settled")
        assert spends.spent.dollars == 0.2


@pytest.mark.parametrize("figure", [-1, 1e300, "free", True, None, [1]])
async def test_a_figure_that_no_call_can_cost_raises_no_budget(tmp_path: Path, figure: object) -> None:
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(told(100, cost=figure)) as model, capped(tmp_path, model.url, spends) as door:
            assert status(await ask(door, max_tokens=200)) == 200
        assert 0 < spends.spent.dollars <= 5.0


@pytest.mark.parametrize(
    ("price", "more"),
    [
        (None, {}),
        (PRICE, {"service_tier": "a dearer one"}),
        (PRICE, {"web_search_options": {"search_context_size": "high"}}),
    ],
    ids=["the model", "how it is served", "a tool at the provider"],
)
async def test_what_has_no_price_is_refused_where_a_cap_is_in_dollars(
    tmp_path: Path, price: NamedPrice | None, more: dict[str, Any]
) -> None:
    """By the books it would cost nothing. A cap in tokens takes it."""
    (tmp_path / "tokens").mkdir()
    async with provider(told(100)) as model:
        unpriced: Route = replace(route(model.url), price=price)
        with budget(Cap(dollars=5.0)) as spends:
            call_budget = TrialCallBudget(spends, in_dollars=True)
            async with open_door(tmp_path, unpriced, call_budget=call_budget) as door:
                refused = await ask(door, max_tokens=50, **more)
                assert status(refused) == 400 and b"is not known" in refused and model.heard == []
                assert not door.calls.sums.over_budget and door.noted()[0].tries == 0
        with budget(Cap(tokens=5_000)) as spends:
            async with open_door(tmp_path / "tokens", unpriced, call_budget=TrialCallBudget(spends)) as door:
                assert status(await ask(door, max_tokens=50, **more)) == 200


@pytest.mark.parametrize("cap", [Cap(dollars=5.0), Cap(tokens=5_000)], ids=["dollars", "tokens"])
async def test_a_prompt_of_unknown_length_is_refused_where_tokens_count(tmp_path: Path, cap: Cap) -> None:
    body = json.dumps({"model": "m", "input": "go on", "previous_response_id": "resp_1"}).encode()
    sent = request("POST /v1/responses HTTP/1.1", body=body)
    (tmp_path / "calls").mkdir()
    async with provider(told(100)) as model:
        with budget(cap) as spends:
            async with capped(tmp_path, model.url, spends) as door:
                refused = await door.send(sent)
                assert status(refused) == 400 and b"previous_response_id" in refused and model.heard == []
                assert b'"invalid_request_error"' in refused and not door.calls.sums.over_budget
        with budget(Cap(calls=5)) as spends:
            async with capped(tmp_path / "calls", model.url, spends) as door:
                assert status(await door.send(sent)) == 200


@pytest.mark.parametrize(("listed", "clamp"), [(None, 40_000), (16_000, None), (50_000, 40_000)])
async def test_without_a_limit_that_of_the_model_holds(tmp_path: Path, listed: int | None, clamp: int | None) -> None:
    """A limit above the model's own would be refused by the provider."""
    price = NamedPrice(price=PRICE.price.model_copy(update={"longest_output": listed}), by=CostBy.TABLE)
    with budget(Cap(dollars=40.0)) as spends:
        call_budget = TrialCallBudget(spends)
        async with (
            provider(told(5)) as model,
            open_door(tmp_path, replace(route(model.url), price=price), call_budget=call_budget) as door,
        ):
            assert status(await ask(door)) == 200
    assert door.noted()[0].clamped_to == clamp


async def test_the_dearest_model_that_may_answer_counts(tmp_path: Path) -> None:
    dear = NamedPrice(price=Price(rates=Rates(input=0.0, output=0.01)), by=CostBy.TABLE)
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(told(100), told(100, cost=0.3), told(100)) as model:
            both = replace(route(model.url), price=PRICE), replace(route(model.url, "openai/dear"), price=dear)
            async with open_door(tmp_path, *both, call_budget=TrialCallBudget(spends, in_dollars=True)) as door:
                await ask(door, max_tokens=2000, models=["dear"])
                assert spends.spent.dollars == 1.0 and door.noted()[0].clamped_to == 500
                await ask(door, max_tokens=200, models=["dear"])
                assert spends.spent.dollars == 1.3  # by the provider's own figure
                await ask(door, max_tokens=200)
                assert spends.spent.dollars == 1.4


async def test_a_further_model_without_a_price_is_refused_where_a_cap_is_in_dollars(tmp_path: Path) -> None:
    with budget(Cap(dollars=5.0)) as spends:
        async with provider(told(100)) as model:
            both = replace(route(model.url), price=PRICE), replace(route(model.url, "openai/other"), price=None)
            async with open_door(tmp_path, *both, call_budget=TrialCallBudget(spends, in_dollars=True)) as door:
                refused = await ask(door, max_tokens=50, models=["other"])
                assert status(refused) == 400 and b"openai/other" in refused and model.heard == []


async def test_room_that_does_not_come_in_time_is_not_the_agents_fault(tmp_path: Path) -> None:
    """Another call holds all of the budget. That is no spent budget, and not marked as one."""
    with budget(Cap(calls=1), elapsed=uptime) as spends:
        held = await spends.reserve(Amount.of(calls=1))
        assert isinstance(held, Reservation)
        call_budget = TrialCallBudget(spends, patience_sec=0.05)
        async with (
            provider(told(5)) as model,
            open_door(tmp_path, replace(route(model.url), price=PRICE), call_budget=call_budget) as door,
        ):
            assert status(await ask(door, max_tokens=50)) == 400 and model.heard == []
            assert not door.calls.sums.over_budget and door.calls.health.given_up is not None
            held.release()
            assert status(await ask(door, max_tokens=50)) == 200 and door.calls.health.given_up is None


async def test_an_agent_that_goes_away_while_it_waits_for_room_calls_nobody(tmp_path: Path) -> None:
    with budget(Cap(calls=1)) as spends:
        held = await spends.reserve(Amount.of(calls=1))
        assert isinstance(held, Reservation)
        async with provider(told(5)) as model, capped(tmp_path, model.url, spends) as door:
            _, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(request(body=json.dumps({**CHAT, "max_tokens": 50}).encode()))
            await eventually(lambda: waits(spends), "the call waits")
            writer.close()
            await eventually(lambda: not waits(spends), "it does not wait any more")
            held.release()
            assert status(await ask(door, max_tokens=50)) == 200 and len(model.heard) == 1


def waits(spends: TrialBudget) -> bool:
    return any(held.waiting for held in spends._used.values())
