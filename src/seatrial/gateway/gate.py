"""The gate of a worker: every model call of its trials goes through it, and no sandbox has a key.

``async with gate.open_for(calls, namespace, routes, call_budget) as door``: while the block runs, the trial reaches its
models at ``door.url``. Calls pass if they have one of ``wire``'s formats and ask a model of the routes. Everything else
is refused with an error in the provider's own format. See ``docs/decisions/one-gate.md``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from seatrial.engine.model_patience import RetryLimits
from seatrial.engine.provider_pace import ProviderPace
from seatrial.gateway.answer_writer import AnswerWriter
from seatrial.gateway.body_memory import BodyMemory, Hold, most_of_text
from seatrial.gateway.call import OneCall
from seatrial.gateway.call_budget import CallBudget, NotGranted
from seatrial.gateway.door import Door, DoorLimits
from seatrial.gateway.forward import Forwarder
from seatrial.gateway.head import RequestHead, Target, plain_target
from seatrial.gateway.replay import RecordedAnswer
from seatrial.gateway.routes import Route, Routes
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.gateway.upstream import Upstream
from seatrial.gateway.wire import (
    BadCall,
    CallRequest,
    JsonObject,
    RefusalKind,
    WireFormat,
    format_of,
    models_answer,
    models_format,
    passing_query,
    read_object,
    remote_addresses,
)
from seatrial.plain_http import BadRequest

_READ_AFTER = 65536
_IN_LOOP = 256 * 1024
"""Longer bodies are read in a thread. For shorter ones a thread costs more time than it saves."""


class Gate:
    """One per worker. Starts with the first door; ``async with`` ends it."""

    def __init__(
        self,
        patience: RetryLimits | None = None,
        pace: ProviderPace | None = None,
        *,
        limits: DoorLimits | None = None,
        upstream: Upstream | None = None,
        memory: BodyMemory | None = None,
    ) -> None:
        self._limits = limits or DoorLimits()
        self._upstream = upstream or Upstream()
        self._memory = memory or BodyMemory()
        self._forwarder = Forwarder(self._upstream, self._memory, patience or RetryLimits(), pace)

    async def __aenter__(self) -> Self:
        await self._upstream.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._upstream.__aexit__(*exc)

    @asynccontextmanager
    async def open_for(
        self, calls: TrialCalls, namespace: Path | None, routes: Routes, call_budget: CallBudget | None = None
    ) -> AsyncIterator[Door]:
        """``namespace`` is that of the sandbox; ``None`` for an agent that runs in this process."""
        handler = _RequestHandler(self._forwarder, self._memory, self._limits, calls, routes, call_budget)
        door = Door(namespace, handler.serve, self._limits)
        self._memory.enter(handler)
        try:
            async with door:
                yield door
        finally:
            self._memory.leave(handler)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks for, and where it goes."""

    read: JsonObject
    request: CallRequest
    route: Route
    url: str
    digest: str


class _RequestHandler:
    """Reads the requests of one door and decides which of them are calls."""

    def __init__(
        self,
        forwarder: Forwarder,
        memory: BodyMemory,
        limits: DoorLimits,
        calls: TrialCalls,
        routes: Routes,
        call_budget: CallBudget | None,
    ) -> None:
        self._forwarder = forwarder
        self._memory = memory
        self._limits = limits
        self._calls = calls
        self._routes = routes
        self._call_budget = call_budget
        self._reads = asyncio.Lock()

    async def serve(self, head: RequestHead, reader: asyncio.StreamReader, answer: AnswerWriter) -> None:
        target = plain_target(head.method, head.target)
        names = frozenset(name for name, _ in head.fields)
        lists = head.method == "GET"
        if lists and "upgrade" in names:  # codex tries this first; after another status it tries again for many seconds
            raise BadRequest(426, "WebSockets are not open here.")
        wire = models_format(target.path, names) if lists else format_of(head.method, target.path)
        if wire is None:
            raise BadRequest(403, "Only calls of models are open here, such as POST /v1/chat/completions.")
        if lists:
            listed = models_answer(wire, list(self._routes.models))
            await answer.whole(200, "", (("content-type", "application/json"),), listed)
            return
        try:
            hold, asked = await self._asked(wire, head, target, reader, answer)
        except BadCall as problem:
            await _refuse(wire, "bad_call", str(problem), answer)
            return
        except _UnknownModel as problem:
            await _refuse(wire, "unknown_model", str(problem), answer)
            return
        with hold:
            served = self._served(wire, head, target, asked, answer, hold)
            del asked
            await _unless_gone(reader, served)

    async def _served(
        self, wire: WireFormat, head: RequestHead, target: Target, asked: _Asked, answer: AnswerWriter, hold: Hold
    ) -> None:
        with self._calls.clock.call():
            call = await self._call(wire, head, target, asked, answer)
            del asked
            if call is not None:
                await call.run(self._forwarder, answer, hold)

    async def _asked(
        self, wire: WireFormat, head: RequestHead, target: Target, reader: asyncio.StreamReader, answer: AnswerWriter
    ) -> tuple[Hold, _Asked]:
        """Reads the body. Reserves its memory first, so that many large bodies wait outside. ``BadCall`` if the body is
        not one JSON object."""
        if any(name == "content-encoding" and value != "identity" for name, value in head.fields):
            raise BadRequest(415, "Bodies are not compressed here.")
        hold = await self._memory.hold(self, head.length)
        try:
            if head.expects_continue:
                answer.go_on()
            async with asyncio.timeout(self._limits.body_sec):
                body = await reader.readexactly(head.length)
            if not hold.resize(most_of_text(body)):  # waiting bodies could block each other forever
                raise BadRequest(503, "There is no memory for a body of this size now.")
            asked = await self._read_in_turn(wire, target, body)
            hold.resize(sys.getsizeof(asked.read.text))
            return hold, asked
        except BaseException:
            hold.release()
            raise

    async def _read_in_turn(self, wire: WireFormat, target: Target, body: bytes) -> _Asked:
        """One large body at a time: a sandbox must not keep the loop, or all threads, busy with what is refused."""
        if len(body) <= _IN_LOOP:
            return self._read(wire, target, body)
        async with self._reads:
            reading = asyncio.ensure_future(asyncio.to_thread(self._read, wire, target, body))
            try:
                return await asyncio.shield(reading)
            finally:
                await asyncio.wait([reading])  # a thread cannot be stopped, and still has the body

    def _read(self, wire: WireFormat, target: Target, body: bytes) -> _Asked:
        read = read_object(body)
        query = passing_query(wire, target.path, target.query)
        request = wire.read_request(target.path, read)
        self._check_reach(request, read)
        route = self._allowed(request)
        url = route.url(wire.prepare_path(target.path, route.model), query)
        return _Asked(read, request, route, url, wire.digest_of(read) if self._calls.needs_digests else "")

    async def _call(
        self, wire: WireFormat, head: RequestHead, target: Target, asked: _Asked, answer: AnswerWriter
    ) -> OneCall | None:
        """``None`` if it was refused."""
        read, request, route, digest = asked.read, asked.request, asked.route, asked.digest
        played, missed = await self._played(target.path, digest, read)
        if missed is not None:
            status = await _refuse(wire, missed.kind, missed.message, answer)
            self._calls.refuse(route, wire.name, status, missed)
            return None
        read.lighten()
        grant = None
        if self._call_budget is not None and request.counts and played is None:
            others = [other for model in request.other_models if (other := self._routes.of(model)) is not None]
            with self._calls.clock.waiting():  # the calls of other trials may hold what is left
                grant = await self._call_budget.reserve(request, route, *others)
        if isinstance(grant, NotGranted):
            status = await self._not_granted(wire, target.path, digest, read, grant, answer)
            self._calls.refuse(route, wire.name, status, grant)
            return None
        return OneCall(
            wire=wire,
            request=request,
            route=route,
            url=asked.url,
            fields=head.fields,
            body=read,
            grant=grant,
            calls=self._calls,
            door=self,
            path=target.path,
            digest=digest,
            played=played,
        )

    async def _played(
        self, path: str, digest: str, read: JsonObject
    ) -> tuple[RecordedAnswer | None, NotGranted | None]:
        """The recorded answer of a replay, or why there is none; neither if the provider is asked."""
        replay = self._calls.replay
        if replay is None:
            return None, None
        if (played := replay.take(path, digest)) is not None:
            return played, None
        words = await replay.miss(path, digest, read)
        return None, None if words is None else NotGranted(words, "replay_miss")

    async def _not_granted(
        self, wire: WireFormat, path: str, digest: str, read: JsonObject, why: NotGranted, answer: AnswerWriter
    ) -> int:
        """The refusal is part of the record: it decided what the agent did next."""
        status, fields, body = wire.refusal(why.kind, why.message)
        kept = self._calls.recording(path, digest, read.text)
        if kept is not None:
            kept.whole(status, fields, body)
            spent, away = why.kind == "over_budget", why.kind == "upstream_away"
            kept.end(why.message, over_budget=spent, broken=False, given_up=away)
        await answer.whole(status, "", fields, body)
        return status

    def _check_reach(self, request: CallRequest, body: JsonObject) -> None:
        """If the sandbox has no internet, the provider must not reach the internet for it."""
        if self._routes.online:
            return
        if request.provider_tools:
            named = ", ".join(request.provider_tools)[:200]
            raise BadCall(f"This task has no internet, so tools that run at the provider are closed: {named}.")
        if (address := next(remote_addresses(body), None)) is not None:
            raise BadCall(f"This task has no internet, so the provider may not fetch {address[:200]!r}.")

    def _allowed(self, request: CallRequest) -> Route:
        for model in (*request.other_models, request.model):
            route = self._routes.of(model)
            if route is None:
                known = ", ".join(self._routes.models)
                raise _UnknownModel(f"The model {model[:200]!r} is not one of this trial's: it may use {known}.")
        assert route is not None
        return route


class _UnknownModel(Exception):
    pass


async def _refuse(wire: WireFormat, kind: RefusalKind, message: str, answer: AnswerWriter) -> int:
    status, fields, body = wire.refusal(kind, message)
    await answer.whole(status, "", fields, body)
    return status


async def _unless_gone(reader: asyncio.StreamReader, work: Coroutine[Any, Any, None]) -> None:
    """Ends the work if the agent closes its connection. A killed agent must not go on spending."""
    loop = asyncio.get_running_loop()
    # Both begin at once, so that the call is sent before the loop turns to other trials.
    working = asyncio.Task(work, loop=loop, eager_start=True)
    gone = asyncio.Task(_gone(reader), loop=loop, eager_start=True)
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
        with suppress(ConnectionError, asyncio.CancelledError):
            await working


async def _gone(reader: asyncio.StreamReader) -> None:
    """Returns when the connection is closed. Bytes after the request are dropped, and beyond a limit they are not
    read."""
    left = _READ_AFTER
    with suppress(ConnectionError):
        while left > 0:
            piece = await reader.read(left)
            if not piece:
                return
            left -= len(piece)
    await asyncio.get_running_loop().create_future()
