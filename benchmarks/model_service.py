"""A model's service for measurements: OpenAI's chat API with answers of a known length, and an exact count of what it
was asked for.

``python -m benchmarks.model_service SECONDS PIECES`` serves in a process of its own. It prints its address, and at the
end of its input what it counted.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self

from seatrial.plain_http import BadRequest, Connections, Request, Response, read_request

_BYTES_PER_TOKEN = 4


@dataclass
class Seen:
    """Every call that was answered, as the service would bill it."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass
class ModelService:
    """Answers take ``seconds``. Streams come in ``pieces`` of one token, evenly over that time. A token has four bytes,
    as the gate estimates: a stream that it cuts tells no usage, so its count is an estimate."""

    seconds: float = 1.0
    pieces: int = 40
    chance: random.Random | None = None
    """If there is one, an answer has a random length of up to what was asked for."""
    held: int = 0
    """This many streams must have begun before any of them goes on."""
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        self._connections = Connections()
        self._begun = 0
        self._all_begun = asyncio.Event()
        self.most_at_once = 0
        self._at_once = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._connections.end()
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._connections.hold(writer):
            try:
                while (request := await read_request(reader, writer)) is not None:
                    await self._answer(request, Response(writer))
                    if request.headers.get("connection", "").lower() == "close":
                        break
            except (BadRequest, ConnectionError, asyncio.CancelledError):
                pass

    async def _answer(self, request: Request, response: Response) -> None:
        asked = json.loads(request.body)
        tokens = self._length(asked)
        usage = {"prompt_tokens": len(request.body) // _BYTES_PER_TOKEN, "completion_tokens": tokens}
        self.seen.calls += 1
        self.seen.input_tokens += usage["prompt_tokens"]
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if asked.get("stream"):
                tells = bool((asked.get("stream_options") or {}).get("include_usage"))
                await response.events(self._streamed(tokens, usage if tells else None))
            else:
                await asyncio.sleep(self.seconds)
                self.seen.output_tokens += tokens
                await response.json(200, _whole("word " * tokens, usage))
        finally:
            self._at_once -= 1

    def _length(self, asked: dict[str, Any]) -> int:
        longest = int(asked.get("max_completion_tokens") or asked.get("max_tokens") or self.pieces)
        return self.pieces if self.chance is None else self.chance.randint(1, longest)

    async def _streamed(self, tokens: int, usage: dict[str, int] | None) -> AsyncIterator[bytes]:
        """Bills each token when it is sent: a client that closes the connection pays no more.

        Each has its moment, as in a service that makes tokens whether or not the last ones were taken. If every pause
        began after the last piece was sent, a slow reader would make its own answer longer."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(tokens):
            self.seen.output_tokens += 1
            yield _event(
                {"choices": [{"index": 0, "delta": {"content": f"{number % 1000:03d} "}, "finish_reason": None}]}
            )
            if number == 0 and self.held:
                await self._until_all_began()
                began = loop.time()
            await asyncio.sleep(began + (number + 1) * self.seconds / tokens - loop.time())
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if usage is not None:
            yield _event({"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    async def _until_all_began(self) -> None:
        self._begun += 1
        if self._begun >= self.held:
            self._all_begun.set()
        await self._all_begun.wait()


def _whole(text: str, usage: dict[str, int]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def _event(content: dict[str, Any]) -> bytes:
    shared = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**shared, **content}).encode() + b"\n\n"


async def _serve(seconds: float, pieces: int, held: int) -> None:
    async with ModelService(seconds, pieces, held=held) as service:
        print(json.dumps({"port": service.port}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps({**vars(service.seen), "most_at_once": service.most_at_once}), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
