"""A server for scripted models: OpenAI's chat API over HTTP, for tests and for trying Seatrial without a key.

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
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Self

from seatrial.plain_http import BadRequest, Connections, Request, Response, read_request
from seatrial.scripted_models.dialects import MANY_COMMANDS, Completion, complete
from seatrial.scripted_models.faults import Fault, FaultPlan, never
from seatrial.scripted_models.scripts import SCRIPTS, Script, View


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
    """If set, requests without ``Authorization: Bearer <key>`` get 401."""
    host: str = "127.0.0.1"
    port: int = 0
    capacity: Capacity | None = None
    kept: int = 1000
    """Number of recent requests to keep."""

    def __post_init__(self) -> None:
        self.calls = 0
        self.refused = 0
        """Calls beyond the capacity."""
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
        match request.method, request.path.partition("?")[0].removeprefix("/v1"):
            case "GET", "/models":
                listed = [{"id": name, "object": "model", "owned_by": "seatrial"} for name in self.scripts]
                await response.json(200, {"object": "list", "data": listed})
            case "POST", "/chat/completions" if self.capacity is not None:
                await self._complete_within(self.capacity, request, response)
            case "POST", "/chat/completions":
                await self._complete(request, response)
            case _:
                await response.json(404, _error(f"No route {request.method} {request.path}.", "invalid_request_error"))

    async def _complete_within(self, capacity: Capacity, request: Request, response: Response) -> None:
        if self._at_once >= capacity.at_once:
            self.calls += 1
            self.refused += 1
            fault = Fault(kind="rate_limit", retry_after_sec=capacity.retry_after_sec)
            await _misbehave(fault, response, streaming=False)
            return
        self._at_once += 1
        try:
            await asyncio.sleep(capacity.seconds)
            await self._complete(request, response)
        finally:
            self._at_once -= 1

    async def _complete(self, request: Request, response: Response) -> None:
        number, at = self.calls, time.monotonic() - self._started
        self.calls += 1
        try:
            body = json.loads(request.body)
            name, messages = str(body["model"]), tuple(body["messages"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadRequest(400, f"The body is not a chat request: {error!r}.") from error
        fault = self.faults(number, at)
        script = self.scripts.get(name.removeprefix("openai/").removeprefix("scripted/"))
        if not self._allows(request):
            fault = Fault(kind="auth")
        view = View(messages=messages, tools=bool(body.get("tools")), tool=_tool(body.get("tools") or []))
        act = None
        if fault is None and script is not None:
            outcome = script(view)
            fault, act = (outcome, None) if isinstance(outcome, Fault) else (None, outcome)
        self.requests.append(
            RecordedCall(at=at, model=name, body=body, headers=_without_key(request.headers), fault=fault)
        )
        if fault is not None:
            await _misbehave(fault, response, streaming=bool(body.get("stream")))
        elif act is None:
            message = f"The model `{name}` does not exist."
            await response.json(404, _error(message, "invalid_request_error", "model_not_found"))
        else:
            await _send(complete(view, act, name, number), body, response)

    def _allows(self, request: Request) -> bool:
        if self.key is None:
            return True
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), f"Bearer {self.key}".encode())


class _HungUp(Exception):
    """A fault closed the connection."""


async def _send(completion: Completion, body: Mapping[str, Any], response: Response) -> None:
    logprobs, token_ids = bool(body.get("logprobs")), bool(body.get("return_token_ids"))
    if not body.get("stream"):
        await response.json(200, completion.whole(logprobs=logprobs, token_ids=token_ids))
        return
    usage = bool((body.get("stream_options") or {}).get("include_usage"))
    pieces = completion.pieces(with_usage=usage, logprobs=logprobs, token_ids=token_ids)
    await response.events(_encoded(pieces))


async def _encoded(pieces: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield b"data: " + json.dumps(piece).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def _misbehave(fault: Fault, response: Response, *, streaming: bool) -> None:
    headers = {}
    if fault.retry_after_sec is not None:
        dated = formatdate(time.time() + fault.retry_after_sec, usegmt=True)
        headers["Retry-After"] = dated if fault.retry_after_form == "date" else f"{fault.retry_after_sec:g}"
    match fault.kind:
        case "rate_limit":
            error = _error("Rate limit reached for requests.", "requests", "rate_limit_exceeded")
            await response.json(429, error, headers)
        case "server_error":
            await response.json(fault.status, _error("The server had an error.", "server_error"), headers)
        case "context_length":
            message = (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
            )
            await response.json(400, _error(message, "invalid_request_error", "context_length_exceeded"))
        case "refused":
            await response.json(400, _error("The request was refused.", "invalid_request_error", "bad_request"))
        case "auth":
            error = _error("Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
            await response.json(401, error)
        case "garbage":
            await response.raw(200, b"<html>not what you asked for</html>", "text/html")
        case "cut":
            await response.cut(streaming=streaming)
            raise _HungUp
        case "hang":
            await asyncio.sleep(fault.hang_sec)
            raise _HungUp


def _tool(offered: Sequence[Mapping[str, Any]]) -> str:
    """The tool that runs commands, of those that a request offers."""
    names = [str((tool.get("function") or {}).get("name", "")) for tool in offered]
    return next((name for name in names if name.endswith(MANY_COMMANDS)), "bash")


def _error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _without_key(headers: Mapping[str, str]) -> dict[str, str]:
    """Keys are stored as hashes: enough to compare them."""
    kept = dict(headers)
    for name in ("authorization", "x-api-key", "api-key"):
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
    parser = argparse.ArgumentParser(description="Serves scripted models over OpenAI's chat API.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
