"""A worker is killed while one model call waits for its answer and another one streams: none is lost from the count.

The agent calls from inside its sandbox, through its door. The provider counts what it was asked and what it told.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seatrial.settings import Settings
from tests.command_line import ROOT, CommandLine, Running
from tests.faults.checker import check_home
from tests.task_files import write_task
from tests.waiting import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(400)]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
FIRST = 2
"""Calls that are answered before two others are held."""


@dataclass
class CountingProvider:
    """Answers with a usage that differs from call to call. While it ``holds``, all but the first calls get no answer,
    or half of a stream."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    held: set[str] = field(default_factory=set)
    holds: bool = True
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = json.loads(await reader.readexactly(length))
            self.calls += 1
            await self._answer(writer, self.calls, streams=bool(body.get("stream")))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, number: int, *, streams: bool) -> None:
        usage = {"prompt_tokens": 10 * number, "completion_tokens": number}
        writer.write(HEAD % (b"text/event-stream" if streams else b"application/json"))
        if streams:
            await _piece(writer, b"data: " + _chunk([{"index": 0, "delta": {"content": "half of "}}]) + b"\n\n")
        if self.holds and number > FIRST:
            self.held.add("stream" if streams else "call")
            while self.holds:
                await asyncio.sleep(0.01)
            return
        self.input_tokens += usage["prompt_tokens"]
        self.output_tokens += usage["completion_tokens"]
        if streams:
            last = _chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}], usage=usage)
            await _piece(writer, b"data: " + last + b"\n\ndata: [DONE]\n\n")
        else:
            message = {"role": "assistant", "content": "yes"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            await _piece(writer, _chunk([choice], usage=usage))
        await _piece(writer, b"")


def _chunk(choices: list[dict[str, object]], **more: object) -> bytes:
    return json.dumps({"id": "x", "model": "m", "choices": choices, **more}).encode()


async def _piece(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


@asynccontextmanager
async def counting_provider() -> AsyncIterator[CountingProvider]:
    made = CountingProvider()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        try:
            yield made
        finally:
            made.holds = False


async def hire(cli: CommandLine) -> Running:
    worker = cli.fork("worker", "-n", "1", OPENAI_API_KEY="k")
    await eventually(lambda: "Worker ready" in worker.err.read_text(), "a worker", 120)
    return worker


async def test_the_calls_and_tokens_of_a_killed_worker_are_counted(cli: CommandLine, tmp_path: Path) -> None:
    settings = {"LEASE_SEC": "6", "HEARTBEAT_SEC": "2", "REAP_SEC": "1", "SANDBOX": "oci"}
    cli.environment.update({f"SEATRIAL_{name}": value for name, value in settings.items()})
    cli.environment["PYTHONPATH"] = str(ROOT)
    task = write_task(tmp_path, "talk", agent_timeout=200)
    async with counting_provider() as model:
        agent = ("-a", "tests.e2e.agents:Talker", "-m", "openai/m", "--ak", f"api_base={model.url}")
        told = await asyncio.to_thread(cli.json, "run", task, *agent, "--queue-only", OPENAI_API_KEY="k")
        worker = await hire(cli)
        await eventually(lambda: model.held == {"call", "stream"}, "two calls under way", 120)
        worker.signal(signal.SIGKILL)
        assert (model.calls, model.output_tokens) == (4, 1 + 2)
        model.holds = False
        await hire(cli)
        await eventually(lambda: cli.count(job_id=str(told["job"]), state="ended") == 1, "the end", 120)
        assert model.calls == 8, "four calls of each try"
        home = Settings(home=cli.home, cache=cli.cache)
        tokens = (model.input_tokens, model.output_tokens)
        await check_home(home, told["job"], model_calls=model.calls, tokens=tokens)
    outcomes = cli.rows("SELECT json_extract(result, '$.outcome') FROM attempts ORDER BY number")
    assert outcomes == [("error",), ("passed",)]
