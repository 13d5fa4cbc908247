"""Executes requests and plans on an event loop. ``sync_driver`` is the synchronous counterpart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, ExitStack, aclosing, closing
from typing import Any

import httpx

from seatrial.client.ask import Ask, Following, Listen, Paged, Pause, Plan, Step, Work
from seatrial.client.transport import (
    QUIET_SEC,
    Attention,
    Walk,
    arguments,
    is_gone,
    partial,
    pause_before,
    stream_arguments,
)
from seatrial.client.destination import Destination
from seatrial.client.messages import Message, MessageReader
from seatrial.client.refusals import refusal, unreachable
from seatrial.client.resumption import Resumption
from seatrial.errors import SeatrialError, StoreUnavailable


class AsyncDriver:
    def __init__(
        self, to: Destination, timeout: float, patience: float, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(transport=transport, **to.options(timeout))
        self._patience = patience

    async def close(self) -> None:
        await self._http.aclose()

    async def run[Answer](self, work: Ask[Answer] | Plan[Answer]) -> Answer:
        return await (self._ask(work) if isinstance(work, Ask) else self._follow_plan(work))

    async def items[Item](self, pages: Paged[Item]) -> AsyncIterator[Item]:
        ask = pages.first
        while True:
            page = await self._ask(ask)
            for item in page.items:
                yield item
            if page.next is None:
                return
            ask = pages.page(page.next)

    async def follow(self, to: Following) -> AsyncIterator[Message]:
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
                resumption.refused(error, self._http.base_url)
            reader = MessageReader(reader.last_id)
            await asyncio.sleep(resumption.pause())

    async def _follow_plan[Answer](self, plan: Plan[Answer]) -> Answer:
        with closing(Walk(plan)) as walk:
            while (step := walk.step()) is not None:
                try:
                    walk.give(await self._take(step))
                except SeatrialError as error:
                    walk.fail(error)
            return walk.answer

    async def _take(self, step: Step) -> Any:
        match step:
            case Ask():
                return await self._ask(step)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Work(call):
                return await asyncio.to_thread(call)
            case Listen(to, seconds):
                return await self._listen(to, seconds)

    async def _ask[Answer](self, ask: Ask[Answer]) -> Answer:
        tries = 0
        while True:
            tries += 1
            try:
                answer = await self._send(ask)
            except httpx.TransportError as error:
                pause = pause_before(ask, error, tries)
                if pause is None:
                    raise unreachable(self._http.base_url, error) from error
                await asyncio.sleep(pause)
                continue
            if answer.is_error and not is_gone(ask, answer, tries):
                raise refusal(answer)
            return ask.read(answer)

    async def _send(self, ask: Ask[Any]) -> httpx.Response:
        async with AsyncExitStack() as cleaning:
            opened = cleaning.enter_context(ExitStack())
            request = self._http.build_request(**arguments(ask, opened))
            answer = await self._http.send(request, stream=True)
            cleaning.push_async_callback(answer.aclose)
            if ask.into is None or answer.is_error:
                await answer.aread()
                return answer
            with partial(ask.into).open("wb") as sink:
                async for piece in answer.aiter_bytes():
                    await asyncio.to_thread(sink.write, piece)
            partial(ask.into).replace(ask.into)
            return answer

    async def _pieces(self, to: Following, last_id: str, read_sec: float) -> AsyncGenerator[bytes]:
        async with self._http.stream(**stream_arguments(to, last_id, read_sec)) as answer:
            if answer.is_error:
                await answer.aread()
                raise refusal(answer)
            async for piece in answer.aiter_bytes():
                yield piece

    async def _listen(self, to: Following, seconds: float | None) -> bool:
        attention = Attention(seconds)
        try:
            async with aclosing(self._pieces(to, "", attention.read_sec)) as pieces:
                async for piece in pieces:
                    if not attention.hears(piece):
                        break
        except (httpx.TransportError, StoreUnavailable):
            return False
        return attention.ended
