"""The gate over real HTTP: from a network namespace that reaches nothing else, and from this machine."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from seatrial.engine.provider_pace import ProviderPace
from seatrial.errors import InvalidInput
from seatrial.gateway.routes import route_to
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import Capacity, ScriptedModels
from seatrial.testing.memory_store.pace import MemoryPace
from tests.gate_doors import HASTY, KEY, OpenDoor, answer, open_door, provider, request, route, status
from tests.waiting import LIMIT_SEC, eventually

ASK = """
import json, sys, urllib.error, urllib.request
method, url, body = json.loads(sys.argv[1])
request = urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body else None)
request.add_header("Authorization", "Bearer made-up-inside")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request, timeout=60) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, str(error)]))
"""
CHAT = {"model": "give-up", "messages": [{"role": "user", "content": "hello"}]}
STREAM = {**CHAT, "stream": True}


@pytest.fixture
def island() -> Iterator[int]:
    """A process in a network namespace of its own, with nothing but a loopback."""
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && exec sleep 300"]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + LIMIT_SEC
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "sleep":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process.pid
        process.kill()


async def ask(island: int, url: str, body: Any = None, method: str = "POST") -> tuple[int, str]:
    """One request from inside."""
    process = await asyncio.create_subprocess_exec(
        *["nsenter", "-t", str(island), "-n", sys.executable, "-c", ASK, json.dumps([method, url, body])],
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    status, text = json.loads(output)
    return status, text


@asynccontextmanager
async def gated(folder: Path, models: ScriptedModels, **settings: Any) -> AsyncIterator[OpenDoor]:
    async with open_door(folder, route(models.base_url, "openai/give-up"), **settings) as door:
        yield door


async def call(door: OpenDoor, content: dict[str, Any]) -> bytes:
    return await door.send(request(body=json.dumps(content).encode()))


def body_of(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def test_inside_only_the_door_reaches_the_model(island: int, tmp_path: Path) -> None:
    namespace = Path(f"/proc/{island}/ns/net")
    async with ScriptedModels(key=KEY) as models, gated(tmp_path, models, namespace=namespace) as door:
        direct, why = await ask(island, f"{models.base_url}/chat/completions", CHAT)
        told, text = await ask(island, f"{door.url}/v1/chat/completions", CHAT)
        with pytest.raises(ConnectionRefusedError):  # nobody outside hears it
            await asyncio.open_connection("127.0.0.1", door.port)
    assert (direct, "refused" in why) == (0, True)
    assert told == 200 and json.loads(text)["choices"][0]["message"]["content"]
    (heard,) = models.requests
    assert heard.headers["authorization"] == f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    assert heard.headers["host"] == models.base_url.split("/")[2]


async def test_each_call_is_counted_as_the_provider_counts_it(tmp_path: Path) -> None:
    async with ScriptedModels() as models, gated(tmp_path, models) as door:
        whole = body_of(await call(door, CHAT))
        streamed = await call(door, STREAM)
        asked = await call(door, {**STREAM, "stream_options": {"include_usage": True}})
    assert b'"usage"' not in streamed and b"[DONE]" in streamed  # taken out again, because the agent did not ask
    assert b'"usage"' in asked
    one, two, three = door.noted()
    assert (one.usage.input_tokens, one.usage.output_tokens) == (
        whole["usage"]["prompt_tokens"],
        whole["usage"]["completion_tokens"],
    )
    assert one.usage == two.usage == three.usage
    assert [each.streamed for each in (one, two, three)] == [False, True, True]
    assert {each.status for each in (one, two, three)} == {200} and {each.tries for each in (one, two, three)} == {1}
    assert one.finish_reason == "stop" and one.first_token_sec is not None
    sums = door.calls.sums
    assert sums.calls == 3 and sums.usage.input_tokens == 3 * (one.usage.input_tokens or 0)


async def test_bodies_pass_byte_for_byte(tmp_path: Path) -> None:
    sent = b'{ "model":"m" ,"messages":[ {"role":"user","content":"\\u00e4 \xc3\xa4"} ], "seed": 1.50 }'
    given = b' {"id" : "x", "choices": [ ], "other": 1e2}\n'
    async with provider(answer(200, given)) as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request(body=sent))
    assert told.endswith(b"\r\n\r\n" + given)
    assert model.heard[0].endswith(b"\r\n\r\n" + sent)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="rate_limit", retry_after_sec=0.01),
        Fault(kind="rate_limit"),
        Fault(kind="server_error", status=503),
        Fault(kind="server_error", status=529),
        Fault(kind="cut"),
        Fault(kind="garbage"),
    ],
    ids=lambda fault: f"{fault.kind} {fault.status} {fault.retry_after_sec}",
)
async def test_what_passes_is_waited_out(tmp_path: Path, fault: Fault) -> None:
    async with (
        ScriptedModels(faults=faults.first([fault, fault])) as models,
        gated(tmp_path, models, patience=HASTY) as door,
    ):
        told = await call(door, CHAT)
    assert status(told) == 200 and models.calls == 3
    (noted,) = door.noted()
    assert noted.tries == 3 and noted.status == 200 and noted.error is None
    assert door.calls.health.requests == 3 and door.calls.health.faults.total() == 2


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(Fault(kind="auth"), 401), (Fault(kind="context_length"), 400), (Fault(kind="refused"), 400)],
    ids=["key", "too long", "refused"],
)
async def test_what_lasts_comes_through_at_once(tmp_path: Path, fault: Fault, expected: int) -> None:
    async with ScriptedModels(faults=faults.always(fault)) as models, gated(tmp_path, models, patience=HASTY) as door:
        assert status(await call(door, CHAT)) == expected
        assert models.calls == 1
    assert door.noted()[0].error


async def test_no_money_is_not_waited_for(tmp_path: Path) -> None:
    broke = answer(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota."}})
    async with provider(broke) as model, open_door(tmp_path, route(model.url), patience=HASTY) as door:
        assert status(await door.send(request())) == 429
        assert len(model.heard) == 1


async def test_out_of_patience_the_agent_gets_the_providers_own_answer(tmp_path: Path) -> None:
    fault = Fault(kind="rate_limit", retry_after_sec=3600)
    async with ScriptedModels(faults=faults.always(fault)) as models, gated(tmp_path, models, patience=HASTY) as door:
        told = await call(door, CHAT)
    assert status(told) == 429 and body_of(told)["error"]["code"] == "rate_limit_exceeded" and models.calls == 1


async def test_a_model_that_is_away_is_told_so(tmp_path: Path) -> None:
    async with ScriptedModels() as models:
        gone = models.base_url
    async with open_door(tmp_path, route(gone)) as door:
        told = await door.send(request())
    assert status(told) >= 400 and b"does not answer" in told
    assert door.calls.health.given_up is not None
    (noted,) = door.noted()
    assert noted.error is not None and gone.split("/")[2].encode() not in told


async def test_a_stream_that_breaks_off_is_not_taken_for_complete(tmp_path: Path) -> None:
    cut = faults.first([Fault(kind="cut")])
    async with ScriptedModels(faults=cut) as models, gated(tmp_path, models, patience=HASTY) as door:
        told = await call(door, STREAM)
    assert b'"error"' in told and models.calls == 1  # the format's own way to say so
    (noted,) = door.noted()
    assert noted.error is not None and "broke off" in noted.error and not noted.usage.is_known


async def test_an_agent_that_goes_away_stops_its_call(tmp_path: Path) -> None:
    """A killed agent does not go on spending, also while its call waits for a rate limit."""
    fault = Fault(kind="rate_limit", retry_after_sec=30)
    async with ScriptedModels(faults=faults.always(fault)) as models, gated(tmp_path, models, patience=HASTY) as door:
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(request(body=json.dumps(CHAT).encode()))
        await eventually(lambda: models.calls == 1, "the call reaches the provider")
        writer.close()
        await eventually(lambda: (tmp_path / "calls.jsonl").exists(), "the call is noted")
        noted = door.noted()[0]
    assert noted.error == "the agent closed the connection" and noted.status is None
    assert door.calls.health.interrupted is not None and models.calls == 1


USAGE = {"prompt_tokens": 40, "completion_tokens": 7}


def counted(door: OpenDoor) -> list[tuple[int | None, int | None, str | None]]:
    return [(each.usage.input_tokens, each.usage.output_tokens, each.error) for each in door.noted()]


async def test_what_a_call_used_is_written_down_before_the_agent_has_its_answer(tmp_path: Path) -> None:
    """An agent that does not read holds its answer up. A worker that is killed now loses no tokens."""
    content = {"id": "x", "model": "m", "choices": [{"message": {"content": "x" * 7_500_000}}], "usage": USAGE}
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel must not take all of it
    async with provider(answer(200, content)) as model, open_door(tmp_path, route(model.url)) as door:
        await asyncio.get_running_loop().run_in_executor(None, slow.connect, ("127.0.0.1", door.port))
        reader, writer = await asyncio.open_connection(sock=slow)
        writer.write(request())
        await eventually(lambda: counted(door) == [(40, 7, "its worker was lost")], "the usage is known")
        assert not (tmp_path / "calls.jsonl").exists()
        assert len(await reader.read(-1)) > 7_500_000
        writer.close()
        await eventually(lambda: counted(door) == [(40, 7, None)], "the call is noted")


async def test_so_is_that_of_a_stream_before_the_agent_has_its_end(tmp_path: Path) -> None:
    """The agent has all it needs, and the provider has not closed its connection yet."""
    piece = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    events = [f"data: {json.dumps(each)}\n\n" for each in (piece, {**piece, "choices": [], "usage": USAGE})]
    closes = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        writer.write("".join([*events, "data: [DONE]\n\n"]).encode())
        await closes.wait()
        writer.close()

    server = await asyncio.start_server(stream, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, open_door(tmp_path, route(url)) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(request(body=json.dumps({**CHAT, "model": "m", "stream": True}).encode()))
        await reader.readuntil(b"[DONE]")
        assert counted(door) == [(40, 7, "its worker was lost")] and not (tmp_path / "calls.jsonl").exists()
        closes.set()
        await reader.read()
        writer.close()
        await eventually(lambda: counted(door) == [(40, 7, None)], "the call is noted")


@pytest.mark.parametrize("stops", [True, False], ids=["by default", "by the setting"])
async def test_the_agents_clock_stands_while_its_call_waits_for_a_limit(tmp_path: Path, stops: bool) -> None:
    """Not while the provider is asked, nor while it is broken. What was waited is told either way."""
    limited, broken = Fault(kind="rate_limit", retry_after_sec=0.05), Fault(kind="server_error", status=500)
    stood: list[int] = []

    async with ScriptedModels(faults=faults.first([limited, broken, limited])) as models:

        @contextmanager
        def stop() -> Iterator[None]:
            stood.append(models.calls)
            yield

        async with gated(tmp_path, models, patience=HASTY, stops_clock=stops) as door:
            door.calls.begins(stop)
            assert status(await call(door, CHAT)) == 200
    assert stood == ([1, 3] if stops else []) and models.calls == 4
    (noted,) = door.noted()
    assert noted.waited_sec >= 0.09 and door.calls.health.pace_wait_sec >= 0.09
    assert door.calls.usage.rate_limited_sec == noted.waited_sec


async def test_a_limited_provider_is_learned_and_never_refuses_an_agent(tmp_path: Path) -> None:
    pace = ProviderPace(MemoryPace(), "worker", _now)
    capacity = Capacity(at_once=3, seconds=0.02, retry_after_sec=0.05)
    async with ScriptedModels(capacity=capacity) as models, gated(tmp_path, models, patience=HASTY, pace=pace) as door:
        told = await asyncio.gather(*(call(door, CHAT) for _ in range(30)))
    assert {status(each) for each in told} == {200}
    assert models.refused and sum(each.waited_sec for each in door.noted()) > 0
    assert door.calls.health.pace_wait_sec > 0


async def test_a_hundred_streams_at_once(tmp_path: Path) -> None:
    async with ScriptedModels(capacity=Capacity(at_once=1000, seconds=0.1)) as models, gated(tmp_path, models) as door:
        told = await asyncio.gather(*(call(door, STREAM) for _ in range(60)))
        assert {each.count(b"[DONE]") for each in told} == {1}
    assert door.calls.sums.calls == 60 == models.calls == len(door.noted())


@pytest.mark.parametrize("address", ["model", "ftp://x/v1", "file:///etc/passwd", "http:///v1", "http://u:p@x/v1"])
def test_what_is_no_address_of_a_model_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        route_to("openai/m", None, address)


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)
