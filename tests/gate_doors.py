"""An open door of a gate in front of a provider, and providers that keep what they hear. For tests of ``gateway``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.agents.inside import NO_KEY
from seatrial.agents.inside import OpenDoor as InsideDoor
from seatrial.engine.model_patience import RetryLimits
from seatrial.engine.provider_pace import ProviderPace
from seatrial.gateway.agent_clock import ClockStop
from seatrial.gateway.body_memory import BodyMemory
from seatrial.gateway.call_budget import CallBudget
from seatrial.gateway.door import Door, DoorLimits
from seatrial.gateway.gate import Gate
from seatrial.gateway.journal import read_calls
from seatrial.gateway.replay import CallReplay
from seatrial.gateway.routes import Route, Routes, agent_variables, route_to
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.gateway.upstream import Upstream, UpstreamLimits

KEY = "sk-canary-of-the-installation"
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"ok": "yes"}'
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
IMPATIENT = RetryLimits(limit_sec=0.0)
HASTY = RetryLimits(limit_sec=60.0, first_wait_sec=0.01, longest_wait_sec=0.01)


def route(url: str, model: str = "openai/m", key: str | None = KEY) -> Route:
    found = route_to(model, key, url)
    assert found is not None
    return found


@dataclass
class OpenDoor:
    door: Door
    calls: TrialCalls
    folder: Path

    @property
    def url(self) -> str:
        return self.door.url

    @property
    def port(self) -> int:
        return int(self.door.url.rpartition(":")[2])

    def noted(self) -> list[Any]:
        return read_calls(self.folder)

    async def send(self, data: bytes, *, end: bool = False) -> bytes:
        """All that comes back on one connection; nothing if it was cut. ``end``: says that nothing follows, which
        whoever waits for an answer does not do."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            if end:
                writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def open_door(
    folder: Path,
    *routes: Route,
    patience: RetryLimits = IMPATIENT,
    namespace: Path | None = None,
    limits: DoorLimits | None = None,
    upstream: UpstreamLimits | None = None,
    pace: ProviderPace | None = None,
    memory: BodyMemory | None = None,
    call_budget: CallBudget | None = None,
    full: bool = False,
    secrets: Iterable[str] = (KEY,),
    online: bool = True,
    stops_clock: bool = True,
    replay: CallReplay | None = None,
) -> AsyncIterator[OpenDoor]:
    calls = TrialCalls(folder, full=full, secrets=secrets, stops_clock=stops_clock, replay=replay)
    gate = Gate(patience, pace, limits=limits, upstream=Upstream(upstream, {}), memory=memory)
    async with gate, gate.open_for(calls, namespace, Routes(routes, online=online), call_budget) as door:
        yield OpenDoor(door, calls, folder)
    calls.close()


@asynccontextmanager
async def way_inside(folder: Path, way: Route) -> AsyncIterator[InsideDoor]:
    """What the runner gives to an agent inside a sandbox."""
    async with Gate(IMPATIENT, upstream=Upstream(None, {})) as gate:
        calls = TrialCalls(folder)

        @asynccontextmanager
        async def opened(namespace: Path | None, clock: ClockStop) -> AsyncIterator[Mapping[str, str]]:
            async with gate.open_for(calls, namespace, Routes([way])) as door:
                yield agent_variables(way, door.url, NO_KEY)

        yield opened
        calls.close()


@dataclass
class Provider:
    """A model's address that keeps every byte it is sent and gives its answers in turn, the last one for ever."""

    answers: list[bytes]
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
            writer.write(self.answers[min(place, len(self.answers) - 1)])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def provider(*answers: bytes, waits: bool = False) -> AsyncIterator[Provider]:
    made = Provider(list(answers) or [ANSWER])
    if not waits:
        made.waits.set()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        try:
            yield made
        finally:
            made.waits.set()


POST_CHAT = "POST /v1/chat/completions HTTP/1.1"


def request(line: str = POST_CHAT, *headers: str, body: bytes | None = None, end: str = "\r\n") -> bytes:
    content = json.dumps(CHAT).encode() if body is None else body
    said = {header.partition(":")[0].strip().lower() for header in headers}
    usual = [text for text in ("Host: x", f"Content-Length: {len(content)}") if text.split(":")[0].lower() not in said]
    return end.join([line, *usual, *headers, "", ""]).encode("latin-1") + content


def answer(status: int, content: Any, *headers: str) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = "\r\n".join(
        [f"HTTP/1.1 {status} X", "Content-Type: application/json", *headers, f"Content-Length: {len(body)}"]
    )
    return head.encode() + b"\r\n\r\n" + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0
