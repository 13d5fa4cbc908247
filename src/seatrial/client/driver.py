"""Executes requests, lists and streams for both clients.

The logic is written once, as coroutines. Everything that blocks is behind ``Io``. ``SyncIo`` never suspends, so
``SyncDriver`` can run the same coroutines without an event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import httpx

from seatrial.client.ask import Ask, Following, Paged
from seatrial.client.destination import Destination
from seatrial.client.messages import Message, MessageReader
from seatrial.client.refusals import refusal, unreachable
from seatrial.client.transport import (
    QUIET_SEC,
    Resumption,
    arguments,
    is_gone,
    part_of,
    pause_before,
    stream_arguments,
)
from seatrial.errors import StoreUnavailable

type Io = AsyncIo | SyncIo
type Plan[Answer] = Callable[[Driver], Awaitable[Answer]]
"""A method that needs several requests."""


class AsyncIo:
    """Awaits on an event loop."""

    def __init__(self, to: Destination, timeout: float, transport: httpx.AsyncBaseTransport | None) -> None:
        self.http = httpx.AsyncClient(transport=transport, **to.options(timeout))

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The content of the answer is not read yet."""
        return await self.http.send(request, stream=True)

    async def read(self, answer: httpx.Response) -> None:
        await answer.aread()

    def pieces(self, answer: httpx.Response) -> AsyncIterator[bytes]:
        return answer.aiter_bytes()

    async def release(self, answer: httpx.Response) -> None:
        await answer.aclose()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def work[Answer](self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.to_thread(call)

    async def close(self) -> None:
        await self.http.aclose()


class SyncIo:
    """Blocks the calling thread, and never suspends."""

    def __init__(self, to: Destination, timeout: float, transport: httpx.BaseTransport | None) -> None:
        self.http = httpx.Client(transport=transport, **to.options(timeout))

    async def send(self, request: httpx.Request) -> httpx.Response:
        return self.http.send(request, stream=True)

    async def read(self, answer: httpx.Response) -> None:
        answer.read()

    async def pieces(self, answer: httpx.Response) -> AsyncIterator[bytes]:
        for piece in answer.iter_bytes():
            yield piece

    async def release(self, answer: httpx.Response) -> None:
        answer.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - this class blocks

    async def work[Answer](self, call: Callable[[], Answer]) -> Answer:
        return call()

    async def close(self) -> None:
        self.http.close()


class Driver:
    def __init__(self, io: Io, patience: float) -> None:
        self.io = io
        self._patience = patience

    async def close(self) -> None:
        await self.io.close()

    async def run[Answer](self, work: Ask[Answer] | Plan[Answer]) -> Answer:
        return await (self.ask(work) if isinstance(work, Ask) else work(self))

    async def ask[Answer](self, ask: Ask[Answer]) -> Answer:
        for tries in count(1):
            try:
                answer = await self._send(ask)
            except httpx.TransportError as error:
                pause = pause_before(ask, error, tries)
                if pause is None:
                    raise unreachable(self.io.http.base_url, error) from error
                await self.io.sleep(pause)
                continue
            if answer.is_error and not is_gone(ask, answer, tries):
                raise refusal(answer)
            return ask.read(answer)
        raise AssertionError("unreachable: the last request either answers or raises")

    async def items[Item](self, pages: Paged[Item]) -> AsyncGenerator[Item]:
        ask = pages.first
        while True:
            page = await self.ask(ask)
            for item in page.items:
                yield item
            if page.next is None:
                return
            ask = pages.page(page.next)

    async def follow(self, to: Following) -> AsyncGenerator[Message]:
        reader, resumption = MessageReader(to.after), Resumption(self._patience)
        while True:
            try:
                async with aclosing(self._pieces(to, reader.last_id, QUIET_SEC)) as pieces:
                    async for piece in pieces:
                        resumption.reached()
                        for message in reader.feed(piece):
                            yield message
                        if reader.ended:
                            return
            except (httpx.TransportError, StoreUnavailable) as error:
                resumption.refused(error, self.io.http.base_url)
            reader = MessageReader(reader.last_id)
            await self.io.sleep(resumption.pause())

    async def listen(self, to: Following, seconds: float | None) -> bool:
        """Waits until a stream sends ``end``; returns whether it did. Stops early if the stream breaks, or after
        ``seconds``."""
        read_sec = QUIET_SEC if seconds is None else min(seconds, QUIET_SEC)
        until = float("inf") if seconds is None else time.monotonic() + seconds + 1
        reader = MessageReader()
        try:
            async with aclosing(self._pieces(to, "", read_sec)) as pieces:
                async for piece in pieces:
                    for _ in reader.feed(piece):
                        pass
                    if reader.ended or time.monotonic() + read_sec > until:
                        break
        except (httpx.TransportError, StoreUnavailable):
            return False
        return reader.ended

    async def _send(self, ask: Ask[Any]) -> httpx.Response:
        with ExitStack() as files:
            async with self._opened(arguments(ask, files)) as answer:
                if ask.into is None or answer.is_error:
                    await self.io.read(answer)
                    return answer
                with part_of(ask.into).open("wb") as sink:
                    async for piece in self.io.pieces(answer):
                        await self.io.work(partial(sink.write, piece))
                part_of(ask.into).replace(ask.into)
                return answer

    async def _pieces(self, to: Following, last_id: str, read_sec: float) -> AsyncGenerator[bytes]:
        async with self._opened(stream_arguments(to, last_id, read_sec)) as answer:
            if answer.is_error:
                await self.io.read(answer)
                raise refusal(answer)
            async for piece in self.io.pieces(answer):
                yield piece

    @asynccontextmanager
    async def _opened(self, request: dict[str, Any]) -> AsyncIterator[httpx.Response]:
        answer = await self.io.send(self.io.http.build_request(**request))
        try:
            yield answer
        finally:
            await self.io.release(answer)


class SyncDriver:
    """The same for callers without an event loop."""

    def __init__(self, io: SyncIo, patience: float) -> None:
        self._driver = Driver(io, patience)

    def close(self) -> None:
        _finished(self._driver.close())

    def run[Answer](self, work: Ask[Answer] | Plan[Answer]) -> Answer:
        return _finished(self._driver.run(work))

    def items[Item](self, pages: Paged[Item]) -> Iterator[Item]:
        return _each(self._driver.items(pages))

    def follow(self, to: Following) -> Iterator[Message]:
        return _each(self._driver.follow(to))


def _finished[Answer](work: Awaitable[Answer]) -> Answer:
    """Runs a coroutine over ``SyncIo``, which never suspends."""
    try:
        next(work.__await__())
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    raise AssertionError("a synchronous driver must not suspend")


def _each[Item](items: AsyncGenerator[Item]) -> Iterator[Item]:
    try:
        while True:
            yield _finished(anext(items))
    except StopAsyncIteration:
        return
    finally:
        _finished(items.aclose())
