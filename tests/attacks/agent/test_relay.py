"""What an agent sends to the relay's port: other calls of the provider, requests in disguise, and floods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from seatrial.sandboxes.network.relay import ModelRelay, RelayLimits

KEY = "sk-canary-of-the-installation"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"ok": "yes"}'
CHAT = "POST /v1/chat/completions HTTP/1.1"


@dataclass
class Provider:
    """A model's address that keeps every byte it is sent and gives one answer."""

    answer: bytes = ANSWER
    heard: list[bytes] = field(default_factory=list)
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            place = len(self.heard)
            self.heard.append(head)
            self.heard[place] += await reader.readexactly(length)
            await self.waits.wait()
            writer.write(self.answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def provider(answer: bytes = ANSWER, *, waits: bool = False) -> AsyncIterator[Provider]:
    made = Provider(answer)
    if not waits:
        made.waits.set()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        try:
            yield made
        finally:
            made.waits.set()


def request(line: str = CHAT, *headers: str, body: bytes = b"{}", end: str = "\r\n") -> bytes:
    said = {header.partition(":")[0].strip().lower() for header in headers}
    usual = [text for text in ("Host: x", f"Content-Length: {len(body)}") if text.split(":")[0].lower() not in said]
    return end.join([line, *usual, *headers, "", ""]).encode("latin-1") + body


async def send(relay: ModelRelay, data: bytes) -> bytes:
    """All that comes back on one connection; nothing if it was cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.url.split(":")[2].split("/")[0]))
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


OTHER_CALLS = [
    "GET /v1/files",
    "POST /v1/files",
    "POST /v1/batches",
    "POST /v1/fine_tuning/jobs",
    "POST /v1/audio/speech",
    "POST /v1/images/generations",
    "GET /v1/organization/usage/completions",
    "GET /v1/organization/admin_api_keys",
    "POST /v1/assistants",
    "GET /v1/chat/completions",
    "GET /v1/responses/resp_123",
    "POST /v1/models/m:delete",
    "POST /v1/key/generate",
    "GET /v1/credits",
    "POST /v1/",
    "GET /v1",
]
SPELLINGS = [
    "POST /v1/chat/completions/../../files",
    "POST /v1/chat/completions/..%2f..%2ffiles",
    "POST /v1/%66iles",
    "POST /v1/chat%2Fcompletions",
    "POST /v1//chat/completions",
    "POST //v1/chat/completions",
    "POST /v1/./chat/completions",
    "POST /v1/chat/completions/",
    "POST /v1/chat/completions;/../files",
    "POST /v1/chat/completions%00",
    "POST /v1/chat\\completions",
    "POST /V1/chat/completions",
    "POST /v1/models/..:generateContent",
    "GET /v1/models/../files",
    "GET /v1/models/%2e%2e/files",
    "GET /v1/models/..",
    "POST /v1/chat/completions#x",
    "POST /v1/chat/completions?x=1#y",
    "POST /v1/chat/completions?a=/../b",
    "POST http://127.0.0.1/v1/chat/completions",
    "POST https://elsewhere.example/v1/chat/completions",
    "CONNECT elsewhere.example:443",
    "OPTIONS *",
    "PUT /v1/chat/completions",
    "DELETE /v1/models/m",
    "post /v1/chat/completions",
    "POST  /v1/chat/completions",
    "POST\t/v1/chat/completions",
]
HONEST_CALLS = [
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "POST /v1/messages?beta=true",
    "POST /v1/messages/count_tokens",
    "POST /v1/v1/messages",
    "POST /v1/embeddings",
    "POST /v1/models/gemini-2.5-pro:generateContent",
    "POST /v1/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    "POST /v1/openai/deployments/mine/chat/completions?api-version=2025-01-01",
    "GET /v1/models",
    "GET /v1/models/openai/gpt-5.2:free",
]


@pytest.mark.parametrize("line", OTHER_CALLS + SPELLINGS)
async def test_only_calls_of_models_are_open(line: str) -> None:
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        answer = await send(relay, request(f"{line} HTTP/1.1"))
    assert 400 <= status(answer) < 500
    assert model.heard == [] and (relay.calls, relay.refused) == (0, 1)


@pytest.mark.parametrize("line", HONEST_CALLS)
async def test_calls_of_agents_pass(line: str) -> None:
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        answer = await send(relay, request(f"{line} HTTP/1.1", "Content-Type: application/json"))
    assert status(answer) == 200 and answer.endswith(b'{"ok": "yes"}')
    (heard,) = model.heard
    assert heard.startswith(f"{line} HTTP/1.1\r\n".encode()) and heard.endswith(b"\r\n\r\n{}")


NEXT = request("POST /v1/files HTTP/1.1")
SMUGGLED = {
    "two lengths": request(CHAT, "Content-Length: 2", f"Content-Length: {2 + len(NEXT)}") + NEXT,
    "length in a list": request(CHAT, "Content-Length: 2, 2"),
    "signed length": request(CHAT, "Content-Length: +2"),
    "hexadecimal length": request(CHAT, "Content-Length: 0x2"),
    "negative length": request(CHAT, "Content-Length: -1"),
    "chunks beside a length": request(CHAT, "Transfer-Encoding: chunked", body=b"0\r\n\r\n") + NEXT,
    "chunks in disguise": request(CHAT, "Transfer-Encoding: xchunked", body=b"0\r\n\r\n") + NEXT,
    "chunks with a tab": request(CHAT, "Transfer-Encoding:\tchunked", body=b"0\r\n\r\n") + NEXT,
    "chunk extensions": request(CHAT, "Transfer-Encoding: chunked", body=b"2;" + b"x" * 9000 + b"\r\n{}\r\n0\r\n\r\n"),
    "space before the colon": request(CHAT, "Transfer-Encoding : chunked"),
    "folded header": request(CHAT, "X-A: 1\r\n Transfer-Encoding: chunked"),
    "bare line feed in a header": request(CHAT, "X-A: 1\nTransfer-Encoding: chunked"),
    "bare carriage return": request(CHAT, "X-A: 1\rTransfer-Encoding: chunked"),
    "bare line feeds": request(end="\n"),
    "null byte": request(CHAT, "X-A: 1\0"),
    "header without a name": request(CHAT, ": value"),
    "header without a colon": request(CHAT, "GET /v1/files HTTP/1.1"),
    "two hosts": request(CHAT, "Host: a", "Host: b"),
    "no version": request("POST /v1/chat/completions"),
    "version 2": request("POST /v1/chat/completions HTTP/2.0"),
    "line in the path": request("POST /v1/chat/completions HTTP/1.1\nX: y HTTP/1.1"),
}


@pytest.mark.parametrize("data", SMUGGLED.values(), ids=list(SMUGGLED))
async def test_what_two_programs_could_read_differently_is_refused(data: bytes) -> None:
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        answer = await send(relay, data)
    assert 400 <= status(answer) < 500 and answer.count(b"HTTP/1.1 ") == 1
    assert model.heard == []


async def test_what_follows_a_request_goes_nowhere() -> None:
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        answer = await send(relay, request() + NEXT)
    assert status(answer) == 200 and answer.count(b"HTTP/1.1 ") == 1
    assert len(model.heard) == 1 and b"files" not in model.heard[0]


async def test_headers_of_one_connection_and_made_up_keys_stay_here() -> None:
    sent = ["Connection: X-Hop, keep-alive", "X-Hop: 1", "Upgrade: h2c", "TE: trailers", "Proxy-Authorization: p"]
    sent += ["Authorization: Bearer made-up", "x-api-key: made-up", "Cookie: c=1", "Host: elsewhere.example"]
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        answer = await send(relay, request(CHAT, *sent, "X-Kept: yes"))
    assert status(answer) == 200
    lines = model.heard[0].decode().lower().split("\r\n")
    names = {line.partition(":")[0] for line in lines if ":" in line}
    assert names == {"authorization", "connection", "content-length", "host", "x-kept"}
    assert f"authorization: bearer {KEY}" in lines and f"host: {model.url.split('/')[2]}" in lines


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: //elsewhere.example/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"SSH-2.0-server\r\n\r\n",
        b"",
    ],
    ids=["redirect", "other scheme", "upgrade", "two lengths", "not HTTP", "nothing"],
)
async def test_an_answer_that_leads_elsewhere_ends_here(answer: bytes) -> None:
    async with provider(answer) as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        told = await send(relay, request())
    assert status(told) in (404, 502)
    assert b"elsewhere.example" not in told and b"127.0.0.1:1" not in told and KEY.encode() not in told


async def test_an_answer_keeps_its_body_and_loses_its_ways_back() -> None:
    given = b"HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nSet-Cookie: a=b\r\nAlt-Svc: h3\r\nContent-Length: 2\r\n\r\n{}"
    async with provider(given) as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        told = (await send(relay, request())).lower()
    assert told.startswith(b"http/1.1 429 ") and told.endswith(b"\r\n\r\n{}") and b"retry-after: 7" in told
    assert b"set-cookie" not in told and b"alt-svc" not in told


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (request(CHAT, *(f"X-{number}: 1" for number in range(200))), 431),
        (request(CHAT, "X-Long: " + "x" * 70_000), 431),
        (request(f"POST /v1/chat/completions?{'x' * 2000} HTTP/1.1"), 403),
        (request(CHAT, "Content-Length: 99999999999"), 413),
        (request(CHAT, f"Content-Length: {'9' * 5000}"), 400),
    ],
    ids=["many headers", "long header", "long query", "long body", "endless length"],
)
async def test_what_is_too_much_is_refused(data: bytes, expected: int) -> None:
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        assert status(await send(relay, data)) == expected
        assert model.heard == [] and relay.refused == 1
        assert status(await send(relay, request())) == 200


async def test_a_flood_of_connections_is_refused_and_another_sandbox_goes_on() -> None:
    limits = RelayLimits(connections=8)
    async with (
        provider(waits=True) as slow,
        provider() as model,
        ModelRelay(slow.url, None, AUTHORIZED, limits=limits) as flooded,
        ModelRelay(model.url, None, AUTHORIZED, limits=limits) as other,
    ):
        waiting = [asyncio.create_task(send(flooded, request())) for _ in range(40)]
        done: set[asyncio.Task[bytes]] = set()
        while len(done) < 32:
            done, _ = await asyncio.wait(waiting, timeout=0.05)
        assert {status(task.result()) for task in done} == {503}
        assert status(await send(other, request())) == 200
        slow.waits.set()
        answers = [status(await task) for task in waiting]
        assert answers.count(200) == 8 == len(slow.heard)
        assert status(await send(flooded, request())) == 200


@pytest.mark.parametrize(
    "begun", [b"", b"POST /v1/chat", request(CHAT, "Content-Length: 50")], ids=["", "head", "body"]
)
async def test_who_says_nothing_more_is_let_go(begun: bytes) -> None:
    limits = RelayLimits(head_sec=0.2, idle_sec=0.2, connections=1)
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED, limits=limits) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.url.split(":")[2].split("/")[0]))
        writer.write(begun)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert status(await send(relay, request())) == 200


async def test_bodies_pass_in_pieces() -> None:
    """A body arrives while it is still being sent, so none is held in memory as a whole."""
    async with provider() as model, ModelRelay(model.url, None, AUTHORIZED) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.url.split(":")[2].split("/")[0]))
        body = json.dumps({"text": "x" * 100_000}).encode()
        data = request(body=body)
        writer.write(data[: -len(body)])
        await writer.drain()
        while not model.heard:  # the head is there before the body was sent
            await asyncio.sleep(0.01)
        writer.write(body)
        assert status(await reader.read()) == 200
        writer.close()
    assert model.heard[0].endswith(body)
