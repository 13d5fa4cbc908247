"""Executes requests and plans in the calling thread. ``driver`` is the asynchronous counterpart."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
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


class SyncDriver:
    def __init__(
        self, to: Destination, timeout: float, patience: float, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(transport=transport, **to.options(timeout))
        self._patience = patience

    def close(self) -> None:
        self._http.close()

    def run[Answer](self, work: Ask[Answer] | Plan[Answer]) -> Answer:
        return self._ask(work) if isinstance(work, Ask) else self._follow_plan(work)

    def items[Item](self, pages: Paged[Item]) -> Iterator[Item]:
        ask = pages.first
        while True:
            page = self._ask(ask)
            yield from page.items
            if page.next is None:
                return
            ask = pages.page(page.next)

    def follow(self, to: Following) -> Iterator[Message]:
        reader, resumption = MessageReader(to.after), Resumption(self._patience)
        while True:
            try:
                with closing(self._pieces(to, reader.last_id, QUIET_SEC)) as pieces:
                    for piece in pieces:
                        resumption.reached()
                        yield from reader.feed(piece)
                        if reader.ended:
                            return
            except (httpx.TransportError, StoreUnavailable) as error:
                resumption.refused(error, self._http.base_url)
            reader = MessageReader(reader.last_id)
            time.sleep(resumption.pause())

    def _follow_plan[Answer](self, plan: Plan[Answer]) -> Answer:
        with closing(Walk(plan)) as walk:
            while (step := walk.step()) is not None:
                try:
                    walk.give(self._take(step))
                except SeatrialError as error:
                    walk.fail(error)
            return walk.answer

    def _take(self, step: Step) -> Any:
        match step:
            case Ask():
                return self._ask(step)
            case Pause(seconds):
                return time.sleep(seconds)
            case Work(call):
                return call()
            case Listen(to, seconds):
                return self._listen(to, seconds)

    def _ask[Answer](self, ask: Ask[Answer]) -> Answer:
        tries = 0
        while True:
            tries += 1
            try:
                answer = self._send(ask)
            except httpx.TransportError as error:
                pause = pause_before(ask, error, tries)
                if pause is None:
                    raise unreachable(self._http.base_url, error) from error
                time.sleep(pause)
                continue
            if answer.is_error and not is_gone(ask, answer, tries):
                raise refusal(answer)
            return ask.read(answer)

    def _send(self, ask: Ask[Any]) -> httpx.Response:
        with ExitStack() as opened:
            request = self._http.build_request(**arguments(ask, opened))
            answer = self._http.send(request, stream=True)
            opened.callback(answer.close)
            if ask.into is None or answer.is_error:
                answer.read()
                return answer
            with partial(ask.into).open("wb") as sink:
                for piece in answer.iter_bytes():
                    sink.write(piece)
            partial(ask.into).replace(ask.into)
            return answer

    def _pieces(self, to: Following, last_id: str, read_sec: float) -> Generator[bytes]:
        with self._http.stream(**stream_arguments(to, last_id, read_sec)) as answer:
            if answer.is_error:
                answer.read()
                raise refusal(answer)
            yield from answer.iter_bytes()

    def _listen(self, to: Following, seconds: float | None) -> bool:
        attention = Attention(seconds)
        try:
            with closing(self._pieces(to, "", attention.read_sec)) as pieces:
                for piece in pieces:
                    if not attention.hears(piece):
                        break
        except (httpx.TransportError, StoreUnavailable):
            return False
        return attention.ended
