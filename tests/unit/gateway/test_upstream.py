from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from seatrial.gateway.upstream import Question, Upstream
from seatrial.plain_http import read_request

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
END = b"0\r\n\r\n"


@asynccontextmanager
async def streaming(goes_on: asyncio.Event) -> AsyncIterator[str]:
    """The address of a service that begins its answer, and ends it when it is told to."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader, writer)
        writer.write(HEAD)
        await goes_on.wait()
        writer.write(END)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        finally:
            goes_on.set()


@pytest.mark.parametrize("forgets", [True, False])
async def test_nobody_holds_a_body_while_its_answer_is_read(forgets: bool) -> None:
    """Its memory is free for others when the answer begins, so it must not be held any more."""
    goes_on, body = asyncio.Event(), b"x" * 100_000 + b"y"
    before = sys.getrefcount(body)
    async with streaming(goes_on) as address, Upstream() as upstream:
        question = Question(address, (), body)
        async with upstream.ask(question) as reply:
            pieces = reply.pieces()
            assert await anext(pieces) == b"first"
            if forgets:
                question.forget()
            assert sys.getrefcount(body) == before + (0 if forgets else 1)
            goes_on.set()
            assert [piece async for piece in pieces] == []


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://127.0.0.1:1/v1", None),
        ("http://localhost/v1", None),
        ("http://models.example/v1", "http://proxy.example:3128"),
        ("https://models.example/v1", None),
    ],
)
def test_the_proxy_of_an_address(url: str, proxy: str | None) -> None:
    upstream = Upstream(proxies={"http": "http://proxy.example:3128"})
    assert [upstream._proxy_for(url) for _ in range(2)] == [proxy, proxy]
