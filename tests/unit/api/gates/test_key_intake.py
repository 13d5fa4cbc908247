"""Keys leave the URL and the headers before anything behind the intake can see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from seatrial.api.gates.key_intake import KeyIntake

KEY = "sk-or-v1-canary-123456"


class Behind:
    """What lies behind the intake: sees the scope, answers 200."""

    def __init__(self) -> None:
        self.scope: Scope | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Asked:
    """One request through the intake."""

    def __init__(self, query: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.behind = Behind()
        self.learnt: list[str] = []
        self.sent: list[Message] = []
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/jobs",
            "query_string": query,
            "headers": list(headers),
        }

    async def go(self) -> Asked:
        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        await KeyIntake(self.behind, self.learnt.extend)(self.scope, receive, send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def answer_headers(self) -> Headers:
        return Headers(raw=self.sent[0]["headers"])


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("openrouter_api_key={}", ""),
        ("a=1&openrouter_api_key={}&b=%20x", "a=1&b=%20x"),
        ("openrouter_api_key={}&timeout_seconds=3", "timeout_seconds=3"),
        ("open%72outer_api_key={}", ""),
        ("%6F%70%65%6e%72%6f%75%74%65%72%5F%61%70%69%5F%6b%65%79={}", ""),
        ("OpenRouter_API_Key={}", ""),
        ("openrouter%5fapi%5Fkey={}&x", "x"),
        ("open%2572outer_api_key={}", ""),
        ("a=1;openrouter_api_key={};b=2", "a=1;b=2"),
        ("openrouter_api_key={}&openrouter_api_key={}", ""),
    ],
)
async def test_every_spelling_of_the_name_is_taken_out(query: str, left: str) -> None:
    asked = await Asked(query.format(KEY, KEY).encode(), [(b"referer", f"http://x/?k={KEY}".encode())]).go()
    assert asked.status == 200
    assert asked.scope["query_string"] == left.encode()
    assert asked.behind.scope is asked.scope, "the access log of the server reads this very scope"
    assert asked.scope["seatrial.keys"] == {"OPENROUTER_API_KEY": KEY}
    assert asked.learnt and set(asked.learnt) == {KEY}
    assert KEY not in repr(asked.scope["headers"])
    assert asked.answer_headers["deprecation"].startswith("@")
    assert 'rel="deprecation"' in asked.answer_headers["link"]
    assert "X-Provider-Key" in asked.answer_headers["warning"]


async def test_other_queries_are_left_exactly_as_they_are() -> None:
    query = b"q=openrouter_api_key&x=%41+b;;&&openrouter_api_keys=1&%zz=%"
    asked = await Asked(query, [(b"referer", b"http://x/?a=1")]).go()
    assert asked.scope["query_string"] == query
    assert asked.scope["seatrial.keys"] == {}
    assert asked.scope["headers"] == [(b"referer", b"http://x/?a=1")]
    assert "deprecation" not in asked.answer_headers


async def test_a_percent_encoded_value_is_read() -> None:
    asked = await Asked(b"openrouter_api_key=sk%2Dor%2Fabc%3D").go()
    assert asked.scope["seatrial.keys"] == {"OPENROUTER_API_KEY": "sk-or/abc="}


async def test_headers_are_taken_out_and_kept_apart() -> None:
    headers = [
        (b"accept", b"*/*"),
        (b"x-provider-key", f"OPENAI_API_KEY={KEY}".encode()),
        (b"x-provider-key", b"HF_TOKEN=hf_abc=="),
    ]
    asked = await Asked(b"", headers).go()
    assert asked.scope["seatrial.keys"] == {"OPENAI_API_KEY": KEY, "HF_TOKEN": "hf_abc=="}
    assert asked.scope["headers"] == [(b"accept", b"*/*")]
    assert "deprecation" not in asked.answer_headers


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        (b"OPENAI_API_KEY=a, HF_TOKEN=b", {"OPENAI_API_KEY": "a", "HF_TOKEN": "b"}),
        (b"OPENAI_API_KEY=a,  HF_TOKEN=b==", {"OPENAI_API_KEY": "a", "HF_TOKEN": "b=="}),
        (b"OPENAI_API_KEY=a,b,c=d", {"OPENAI_API_KEY": "a,b,c=d"}),
    ],
)
async def test_headers_that_a_browser_joined_are_told_apart(header: bytes, keys: dict[str, str]) -> None:
    asked = await Asked(b"", [(b"x-provider-key", header)]).go()
    assert asked.scope["seatrial.keys"] == keys


@pytest.mark.parametrize("query", [b"openrouter_api_key=", b"openrouter_api_key"])
async def test_an_empty_key_in_the_url_is_none(query: bytes) -> None:
    asked = await Asked(query, []).go()
    assert asked.scope["seatrial.keys"] == {}
    assert asked.scope["query_string"] == b""


@pytest.mark.parametrize(
    ("query", "header"),
    [
        (b"openrouter_api_key=a%0Ab", b""),
        (b"openrouter_api_key=a%00b", b""),
        (b"openrouter_api_key=a%20b", b""),
        (b"openrouter_api_key=%C3%A4", b""),
        (b"openrouter_api_key=%FF", b""),
        (b"openrouter_api_key=" + b"x" * 4097, b""),
        (b"openrouter_api_key=one&openrouter_api_key=two", b""),
        (b"", b"OPENAI_API_KEY="),
        (b"", b"OPENAI_API_KEY"),
        (b"", b"OPENAI_API_KEY=a, PATH=/tmp"),
        (b"", b"=" + KEY.encode()),
        (b"", b"PATH=/tmp"),
        (b"", b"openai_api_key=abc"),
        (b"", b"LD_PRELOAD=/tmp/x.so"),
        (b"", b"SEATRIAL_SERVER_TOKEN=abc"),
        (b"", b"OPENAI_API_BASE=http://x"),
        (b"openrouter_api_key=abc", b"OPENROUTER_API_KEY=abd"),
    ],
)
async def test_what_is_no_key_is_refused_and_not_repeated(query: bytes, header: bytes) -> None:
    asked = await Asked(query, [(b"x-provider-key", header)] if header else []).go()
    assert asked.status == 400
    assert asked.behind.scope is None
    assert b"openrouter_api_key" not in asked.scope["query_string"]
    body = b"".join(message.get("body", b"") for message in asked.sent)
    assert KEY.encode() not in body and b'"code":"bad_request"' in body
