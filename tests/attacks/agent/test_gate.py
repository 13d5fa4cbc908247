"""What an agent sends to its door: other calls of the provider, requests in disguise, and floods."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from seatrial.gateway.call import _passes
from seatrial.gateway.door import DoorLimits
from tests.gate_doors import CHAT as BODY
from tests.gate_doors import KEY, POST_CHAT, answer, open_door, provider, request, route, status
from tests.waiting import eventually

CHAT = POST_CHAT
HARMFUL_HEADERS = frozenset(
    {
        "x-goog-fieldmask",  # leaves the usage out of an answer
        *("x-http-method-override", "x-http-method", "x-method-override"),  # make another call of it
        *("openai-organization", "openai-project", "x-goog-user-project"),  # choose who pays
        "idempotency-key",  # could fetch the answer of another trial with the same account
    }
)


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
MESSAGES = {**BODY, "max_tokens": 5}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
HONEST_CALLS: list[tuple[str, dict[str, object]]] = [
    ("POST /v1/chat/completions", BODY),
    ("POST /chat/completions", BODY),
    ("POST /api/v1/chat/completions", BODY),
    ("POST /v1/responses", {"model": "m", "input": "hello"}),
    ("POST /v1/messages?beta=true", MESSAGES),
    ("POST /v1/messages/count_tokens", BODY),
    ("POST /v1/embeddings", {"model": "m", "input": "hello"}),
    ("POST /v1beta/models/m:generateContent", CONTENTS),
    ("POST /v1beta/models/m:streamGenerateContent?alt=sse", CONTENTS),
]


@pytest.mark.parametrize("line", OTHER_CALLS + SPELLINGS)
async def test_only_calls_of_models_are_open(tmp_path: Path, line: str) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request(f"{line} HTTP/1.1"))
    assert 400 <= status(told) < 500
    assert model.heard == [] and door.noted() == []


async def test_a_websocket_is_refused_by_a_status_after_which_agents_go_on_without(tmp_path: Path) -> None:
    """codex falls back to plain calls at once after this status, and after seconds of further tries otherwise."""
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request("GET /v1/responses HTTP/1.1", *upgrade, body=b""))
    assert status(told) == 426
    assert model.heard == [] and door.noted() == []


@pytest.mark.parametrize(("line", "body"), HONEST_CALLS, ids=[line for line, _ in HONEST_CALLS])
async def test_calls_of_agents_pass(tmp_path: Path, line: str, body: dict[str, object]) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        sent = json.dumps(body).encode()
        told = await door.send(request(f"{line} HTTP/1.1", "Content-Type: application/json", body=sent))
    assert status(told) == 200 and b'{"ok": "yes"}' in told
    (heard,) = model.heard
    below = line.split(" ")[1].removeprefix("/api").removeprefix("/v1beta").removeprefix("/v1")
    assert heard.startswith(f"POST /v1{below} HTTP/1.1\r\n".encode()) and heard.endswith(b"\r\n\r\n" + sent)


async def test_the_list_of_models_is_our_own(tmp_path: Path) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request("GET /v1/models HTTP/1.1", body=b""))
    assert status(told) == 200 and [each["id"] for each in json.loads(told.split(b"\r\n\r\n")[1])["data"]] == ["m"]
    assert model.heard == []


@pytest.mark.parametrize("name", ["other", "openai/other", "M", "m ", "m/../other", "*", ""])
async def test_another_model_does_not_pass(tmp_path: Path, name: str) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request(body=json.dumps({**BODY, "model": name}).encode()))
        assert 400 <= status(told) < 500 and model.heard == []
        hidden = b'{"model": "m", "messages": [], "model": "other"}'
        assert status(await door.send(request(body=hidden))) == 400 and model.heard == []
        assert status(await door.send(request(body=json.dumps({**BODY, "model": "openai/m"}).encode()))) == 200
    assert json.loads(model.heard[0].split(b"\r\n\r\n")[1])["model"] == "m"


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
async def test_what_two_programs_could_read_differently_is_refused(tmp_path: Path, data: bytes) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(data, end=True)
    assert 400 <= status(told) < 500 and told.count(b"HTTP/1.1 ") == 1
    assert model.heard == []


async def test_what_follows_a_request_goes_nowhere(tmp_path: Path) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request() + NEXT)
    assert status(told) == 200 and told.count(b"HTTP/1.1 ") == 1
    assert len(model.heard) == 1 and b"files" not in model.heard[0]


async def test_headers_of_one_connection_and_made_up_keys_stay_here(tmp_path: Path) -> None:
    sent = ["Connection: X-Hop, keep-alive", "X-Hop: 1", "Upgrade: h2c", "TE: trailers", "Proxy-Authorization: p"]
    sent += ["Authorization: Bearer made-up", "x-api-key: made-up", "Cookie: c=1", "Host: elsewhere.example"]
    sent += ["OpenAI-Organization: other", "X-Goog-User-Project: other", "X-HTTP-Method-Override: DELETE"]
    sent += ["Accept-Encoding: gzip, br", "X-Original-URL: /v1/files", "Content-Type: text/plain", "X-Unknown: 1"]
    sent += ["X-Goog-FieldMask: candidates", "Idempotency-Key: other", "ChatGPT-Account-ID: other"]
    kept = ["User-Agent: agent/1", "Accept: */*", "X-Stainless-Lang: js", "X-App: cli", "Session_ID: s"]
    kept += ["Anthropic-Version: 2023-06-01", "Anthropic-Beta: b", "OpenAI-Beta: c", "HTTP-Referer: r", "X-Title: t"]
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request(CHAT, *sent, *kept))
    assert status(told) == 200
    lines = model.heard[0].decode().lower().split("\r\n")
    names = {line.partition(":")[0] for line in lines[1:] if ": " in line and not line.startswith("{")}
    passed = {line.partition(":")[0].lower() for line in kept}
    assert names == {"authorization", "accept-encoding", "content-type", "content-length", "host"} | passed
    assert {line.lower() for line in kept} <= set(lines) and "content-type: application/json" in lines
    assert f"authorization: bearer {KEY}" in lines and f"host: {model.url.split('/')[2]}" in lines
    assert "accept-encoding: identity" in lines


def test_no_header_that_must_not_pass_is_on_the_list() -> None:
    assert not any(_passes(name) for name in HARMFUL_HEADERS | {"x-api-key", "cookie"})


async def test_a_key_in_the_query_stays_here(tmp_path: Path) -> None:
    line = "POST /v1beta/models/m:generateContent?key=made-up HTTP/1.1"
    async with provider() as model, open_door(tmp_path, route(model.url, "gemini/m")) as door:
        told = await door.send(request(line, body=json.dumps(CONTENTS).encode()))
        fields = "POST /v1beta/models/m:generateContent?fields=candidates HTTP/1.1"
        assert status(await door.send(request(fields, body=json.dumps(CONTENTS).encode()))) == 400
    assert status(told) == 200
    (heard,) = model.heard
    assert b"made-up" not in heard and f"x-goog-api-key: {KEY}".encode() in heard


@pytest.mark.parametrize(
    "given",
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
async def test_an_answer_that_leads_elsewhere_ends_here(tmp_path: Path, given: bytes) -> None:
    async with provider(given) as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request())
    assert 400 <= status(told) < 600 and len(model.heard) == 1
    assert b"elsewhere.example" not in told and b"127.0.0.1:1" not in told and KEY.encode() not in told


async def test_an_answer_keeps_its_body_and_loses_its_ways_back(tmp_path: Path) -> None:
    given = answer(429, {}, "Retry-After: 7", "Set-Cookie: a=b", "Alt-Svc: h3", "X-Request-Id: r")
    async with provider(given) as model, open_door(tmp_path, route(model.url)) as door:
        told = (await door.send(request())).lower()
    assert told.startswith(b"http/1.1 429 ") and told.endswith(b"\r\n\r\n{}")
    assert b"retry-after: 7" in told and b"x-request-id: r" in told
    assert b"set-cookie" not in told and b"alt-svc" not in told


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (request(CHAT, *(f"X-{number}: 1" for number in range(200))), 431),
        (request(CHAT, "X-Long: " + "x" * 70_000), 431),
        (request(f"POST /v1/chat/completions?{'x' * 2000} HTTP/1.1"), 403),
        (request(CHAT, "Content-Length: 99999999999"), 413),
        (request(CHAT, f"Content-Length: {'9' * 5000}"), 400),
        (request(CHAT, "Content-Encoding: gzip"), 415),
        (request(body=b'{"model": "m", "messages": [' + b"{}," * 600_000 + b"{}]}"), 400),
        (request(body=b'{"model": "m", "messages": ' + b"[" * 100_000), 400),
    ],
    ids=["headers", "long header", "long query", "long body", "endless length", "compressed", "many parts", "deep"],
)
async def test_what_is_too_much_is_refused(tmp_path: Path, data: bytes, expected: int) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        assert status(await door.send(data)) in (expected, 413)
        assert model.heard == []
        assert status(await door.send(request())) == 200


async def test_a_flood_of_connections_is_refused_and_another_sandbox_goes_on(tmp_path: Path) -> None:
    limits = DoorLimits(connections=8)
    (tmp_path / "other").mkdir()
    async with (
        provider(waits=True) as slow,
        provider() as model,
        open_door(tmp_path, route(slow.url), limits=limits) as flooded,
        open_door(tmp_path / "other", route(model.url), limits=limits) as other,
    ):
        waiting = [asyncio.create_task(flooded.send(request())) for _ in range(40)]
        done: set[asyncio.Task[bytes]] = set()
        while len(done) < 32:
            done, _ = await asyncio.wait(waiting, timeout=0.05)
        told = [status(task.result()) for task in done]
        assert set(told) <= {503, 0} and 503 in told  # far too many are cut off without an answer
        assert status(await other.send(request())) == 200
        slow.waits.set()
        answers = [status(await task) for task in waiting]
        assert answers.count(200) == 8 == len(slow.heard)
        assert status(await flooded.send(request())) == 200


@pytest.mark.parametrize(
    "begun", [b"", b"POST /v1/chat", request(CHAT, "Content-Length: 50", body=b"{}")], ids=["", "head", "body"]
)
async def test_who_says_nothing_more_is_let_go(tmp_path: Path, begun: bytes) -> None:
    limits = DoorLimits(head_sec=0.2, body_sec=0.2, connections=1)
    async with provider() as model, open_door(tmp_path, route(model.url), limits=limits) as door:
        with suppress(ConnectionError):
            assert await door.send(begun) == b""

        async def has_room() -> bool:
            return status(await door.send(request())) == 200

        await eventually(has_room, "the one place is free again")


def seen(content: list[dict[str, object]]) -> dict[str, object]:
    return {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": content}]}


AWAY = "https://elsewhere.example/?what=the-sandbox-has"
INLINE = "data:image/png;base64,aGVsbG8="
WAYS_OUT: dict[str, tuple[str, dict[str, object]]] = {
    "a web search of responses": ("responses", {"model": "m", "input": "x", "tools": [{"type": "web_search"}]}),
    "a remote server of tools": ("responses", {"model": "m", "input": "x", "tools": [{"type": "mcp", "url": AWAY}]}),
    "a web search of chats": ("chat/completions", {**BODY, "web_search_options": {"search_context_size": "low"}}),
    "a reseller's plugin": ("chat/completions", {**BODY, "plugins": [{"id": "web"}]}),
    "a fetch of messages": ("messages", {**MESSAGES, "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
    "servers of messages": ("messages", {**MESSAGES, "mcp_servers": [{"type": "url", "url": AWAY, "name": "x"}]}),
    "a picture of chats": ("chat/completions", seen([{"type": "image_url", "image_url": {"url": AWAY}}])),
    "a picture by its bare address": ("chat/completions", seen([{"type": "image_url", "image_url": AWAY}])),
    "a name in another case": ("chat/completions", seen([{"type": "image_url", "Image_URL": {"URL": AWAY}}])),
    "a video of a reseller": ("chat/completions", seen([{"type": "video_url", "video_url": {"url": AWAY}}])),
    "a file of a reseller": ("chat/completions", seen([{"type": "file", "file": {"file_data": AWAY}}])),
    "a picture of responses": (
        "responses",
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": AWAY}]}]},
    ),
    "a file of responses": (
        "responses",
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_file", "file_url": AWAY}]}]},
    ),
    "a picture of messages": ("messages", seen([{"type": "image", "source": {"type": "url", "url": AWAY}}])),
    "a picture in a tool's result": (
        "messages",
        seen([{"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "document", "source": {"type": "url", "url": f" {AWAY.upper()}"}}]}]),
    ),
}  # fmt: skip
GOOGLES_WAYS: dict[str, dict[str, object]] = {
    "a search of Google": {**CONTENTS, "tools": [{"googleSearch": {}}]},
    "addresses as context": {**CONTENTS, "tools": [{"urlContext": {}}]},
    "a file of Google": {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": AWAY}}]}]},
    "the same in snake case": {"contents": [{"role": "user", "parts": [{"file_data": {"file_uri": AWAY}}]}]},
}
OFFLINE_WORK: dict[str, tuple[str, dict[str, object]]] = {
    "a tool of its own": (
        "responses",
        {"model": "m", "input": "x", "tools": [{"type": "function", "name": "web_search"}]},
    ),
    "a picture in the request": ("chat/completions", seen([{"type": "image_url", "image_url": {"url": INLINE}}])),
    "addresses in a text": ("chat/completions", seen([{"type": "text", "text": f"see {AWAY}"}])),
    "what its own tool was called with": (
        "messages",
        seen([{"type": "tool_use", "id": "t", "name": "fetch", "input": {"image_url": AWAY, "source": {"url": AWAY}}}]),
    ),
    "a file in the request": (
        "messages",
        seen([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}]),
    ),
}


@pytest.mark.parametrize(("path", "body"), WAYS_OUT.values(), ids=list(WAYS_OUT))
async def test_a_provider_is_no_way_to_the_internet(tmp_path: Path, path: str, body: dict[str, object]) -> None:
    """Of a task without one. The same request passes where the task has it."""
    sent = request(f"POST /v1/{path} HTTP/1.1", body=json.dumps(body).encode())
    (tmp_path / "online").mkdir()
    async with (
        provider() as model,
        open_door(tmp_path, route(model.url), online=False) as closed,
        open_door(tmp_path / "online", route(model.url)) as online,
    ):
        told = await closed.send(sent)
        assert status(told) == 400 and b"no internet" in told and model.heard == [] and closed.noted() == []
        assert status(await online.send(sent)) == 200


@pytest.mark.parametrize("body", GOOGLES_WAYS.values(), ids=list(GOOGLES_WAYS))
async def test_nor_is_google(tmp_path: Path, body: dict[str, object]) -> None:
    sent = request("POST /v1beta/models/m:generateContent HTTP/1.1", body=json.dumps(body).encode())
    async with provider() as model, open_door(tmp_path, route(model.url, "gemini/m"), online=False) as door:
        told = await door.send(sent)
        assert status(told) == 400 and b"no internet" in told and model.heard == []
        honest = request("POST /v1beta/models/m:generateContent HTTP/1.1", body=json.dumps(CONTENTS).encode())
        assert status(await door.send(honest)) == 200


@pytest.mark.parametrize(("path", "body"), OFFLINE_WORK.values(), ids=list(OFFLINE_WORK))
async def test_work_without_the_internet_passes(tmp_path: Path, path: str, body: dict[str, object]) -> None:
    async with provider() as model, open_door(tmp_path, route(model.url), online=False) as door:
        told = await door.send(request(f"POST /v1/{path} HTTP/1.1", body=json.dumps(body).encode()))
    assert status(told) == 200 and len(model.heard) == 1
