"""A server for scripted models over HTTP, for tests and for trying Seatrial without a key. It speaks OpenAI's chat
completions and responses, Anthropic's messages and Google's generateContent, streamed or not.

In a program: ``async with ScriptedModels() as models``, and give ``models.base_url`` to an agent as its ``api_base``;
the model's name is the script's. As a process: ``python -m seatrial.testing.model_server``, which prints its address.
It does not know Harbor, and imports only the standard library and its own scripts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import hmac
import json
import re
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Self

from seatrial.plain_http import BadRequest, Connections, Request, Response, read_request
from seatrial.scripted_models.answer import Answer, Asked, Counted
from seatrial.scripted_models.dialects import answer, count_prompt
from seatrial.scripted_models.faults import Fault, FaultPlan, never
from seatrial.scripted_models.formats import FORMATS, Format
from seatrial.scripted_models.scripts import SCRIPTS, Script

_VERSION = re.compile(r"^/v1(?:beta|alpha)?(?=/)")
_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One completion request, as received."""

    at: float
    """Seconds since the server started."""
    model: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """Lower-case names. A key appears only as its hash."""
    fault: Fault | None
    """The error that the call got instead of an answer."""
    format: str = "chat"
    counted: Counted | None = None
    """What the answer told of its tokens; ``None`` if there was none."""
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a slow provider takes: more calls at once than this get 429."""

    at_once: int
    seconds: float = 0.1
    """How long each answer takes."""
    retry_after_sec: float | None = 1.0


@dataclass
class ScriptedModels:
    """All scripts behind one address. ``calls`` counts every completion request, answered or not."""

    scripts: Mapping[str, Script] = field(default_factory=lambda: SCRIPTS)
    faults: FaultPlan = never
    key: str | None = field(default=None, repr=False)
    """If set, requests without it get 401. It comes in the header of the request's format."""
    host: str = "127.0.0.1"
    port: int = 0
    capacity: Capacity | None = None
    kept: int = 1000
    """Number of recent requests to keep."""

    def __post_init__(self) -> None:
        self.calls = 0
        self.refused = 0
        """Calls beyond the capacity."""
        self.counted = Counted()
        """Tokens of all answers."""
        self._at_once = 0
        self.requests: deque[RecordedCall] = deque(maxlen=self.kept)
        self._connections = Connections()

    async def __aenter__(self) -> Self:
        self._started = time.monotonic()
        self._server = await asyncio.start_server(self._connected, self.host, self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._connections.end()
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}/v1"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._connections.hold(writer):
            try:
                while (request := await read_request(reader, writer)) is not None:
                    await self._answer(request, Response(writer))
                    if request.headers.get("connection", "").lower() == "close":
                        break
            except BadRequest as error:
                with contextlib.suppress(ConnectionError):
                    await Response(writer).json(error.status, _error(str(error), "invalid_request_error"))
            except (ConnectionError, _HungUp, asyncio.CancelledError):
                pass  # the client disconnected, a fault closed the connection, or the server is closing

    async def _answer(self, request: Request, response: Response) -> None:
        path = _VERSION.sub("", request.path.partition("?")[0])
        wire = next((wire for wire in FORMATS if request.method == "POST" and wire.serves(path)), None)
        if request.method == "GET" and path == "/models":
            listed = [{"id": name, "object": "model", "owned_by": "seatrial"} for name in self.scripts]
            await response.json(200, {"object": "list", "data": listed})
        elif request.method == "GET" and "upgrade" in request.headers:
            message = "WebSockets are not spoken here."
            await response.json(426, _error(message, "invalid_request_error"))
        elif wire is None:
            await response.json(404, _error(f"No route {request.method} {request.path}.", "invalid_request_error"))
        elif wire.length_at is not None and path.endswith(wire.length_at[0]):
            asked, _ = _read(wire, path, request.body)
            await response.json(200, {wire.length_at[1]: count_prompt(asked.view)})
        elif self.capacity is not None:
            await self._complete_within(self.capacity, wire, path, request, response)
        else:
            await self._complete(wire, path, request, response)

    async def _complete_within(
        self, capacity: Capacity, wire: Format, path: str, request: Request, response: Response
    ) -> None:
        if self._at_once >= capacity.at_once:
            self.calls += 1
            self.refused += 1
            fault = Fault(kind="rate_limit", retry_after_sec=capacity.retry_after_sec)
            await _misbehave(fault, wire, response, streaming=False)
            return
        self._at_once += 1
        try:
            await asyncio.sleep(capacity.seconds)
            await self._complete(wire, path, request, response)
        finally:
            self._at_once -= 1

    async def _complete(self, wire: Format, path: str, request: Request, response: Response) -> None:
        number, at = self.calls, time.monotonic() - self._started
        self.calls += 1
        asked, body = _read(wire, path, request.body)
        fault, said = self._decide(asked, request, number, at)
        counted = said.counted if said is not None else None
        headers = _without_key(request.headers)
        self.requests.append(RecordedCall(at, asked.model, body, headers, fault, wire.name, counted, asked.streams))
        if fault is not None:
            await _misbehave(fault, wire, response, streaming=asked.streams)
        elif said is None:
            message = f"The model `{asked.model}` does not exist."
            await response.json(404, wire.error(404, message, "invalid_request_error", "model_not_found"))
        else:
            self.counted += said.counted
            await _send(said, asked, wire, response)

    def _decide(self, asked: Asked, request: Request, number: int, at: float) -> tuple[Fault | None, Answer | None]:
        """Neither, if there is no such model."""
        fault = self.faults(number, at)
        if not self._allows(request):
            fault = Fault(kind="auth")
        script = self.scripts.get(asked.model.removeprefix("openai/").removeprefix("scripted/"))
        if fault is not None or script is None:
            return fault, None
        outcome = script(asked.view)
        return (outcome, None) if isinstance(outcome, Fault) else (None, answer(asked, outcome, number))

    def _allows(self, request: Request) -> bool:
        if self.key is None:
            return True
        given = (request.headers.get(name, "").removeprefix("Bearer ") for name in _KEY_HEADERS)
        return any(hmac.compare_digest(key.encode(), self.key.encode()) for key in given)


class _HungUp(Exception):
    """A fault closed the connection."""


def _read(wire: Format, path: str, body: bytes) -> tuple[Asked, Mapping[str, Any]]:
    try:
        read = json.loads(body)
        return wire.read(path, read), read
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(400, f"The body is not a request of the format {wire.name}: {error!r}.") from error


async def _send(said: Answer, asked: Asked, wire: Format, response: Response) -> None:
    if asked.streams:
        await response.events(_awaited(wire.events(said, asked)))
    else:
        await response.json(200, wire.whole(said, asked))


async def _awaited(events: Iterator[bytes]) -> AsyncIterator[bytes]:
    for event in events:
        yield event


async def _misbehave(fault: Fault, wire: Format, response: Response, *, streaming: bool) -> None:
    headers = {}
    if fault.retry_after_sec is not None:
        dated = formatdate(time.time() + fault.retry_after_sec, usegmt=True)
        headers["Retry-After"] = dated if fault.retry_after_form == "date" else f"{fault.retry_after_sec:g}"
    match fault.kind:
        case "garbage":
            await response.raw(200, b"<html>not what you asked for</html>", "text/html")
        case "cut":
            await response.cut(streaming=streaming)
            raise _HungUp
        case "hang":
            await asyncio.sleep(fault.hang_sec)
            raise _HungUp
        case _:
            status, message, kind, code = _refusal(fault)
            await response.json(status, wire.error(status, message, kind, code), headers)


def _refusal(fault: Fault) -> tuple[int, str, str, str | None]:
    match fault.kind:
        case "rate_limit":
            return 429, "Rate limit reached for requests.", "requests", "rate_limit_exceeded"
        case "context_length":
            message = (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
            )
            return 400, message, "invalid_request_error", "context_length_exceeded"
        case "refused":
            return 400, "The request was refused.", "invalid_request_error", "bad_request"
        case "auth":
            return 401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"
        case _:
            return fault.status, "The server had an error.", "server_error", None


def _error(message: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _without_key(headers: Mapping[str, str]) -> dict[str, str]:
    """Keys are stored as hashes: enough to compare them."""
    kept = dict(headers)
    for name in _KEY_HEADERS:
        if name in kept:
            secret = kept[name].removeprefix("Bearer ")
            kept[name] = f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}"
    return kept


async def _serve(arguments: argparse.Namespace) -> None:
    async with ScriptedModels(host=arguments.host, port=arguments.port) as models:
        sys.stdout.write(json.dumps({"base_url": models.base_url, "models": list(models.scripts)}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves scripted models over HTTP in the formats of the providers.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
