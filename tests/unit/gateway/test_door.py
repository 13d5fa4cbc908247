"""What a door does with connections that nobody reads, that are too many, or that a web page made."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from seatrial.engine.provider_pace import ProviderPace
from seatrial.gateway.answer_writer import AnswerWriter, NotRead
from seatrial.gateway.door import Door, DoorLimits
from seatrial.gateway.head import RequestHead, written
from seatrial.testing.memory_store.pace import MemoryPace
from tests.gate_doors import CHAT, POST_CHAT, OpenDoor, answer, open_door, provider, request, route, status
from tests.virtual_time import run_virtual
from tests.waiting import LIMIT_SEC, eventually

USAGE = {"prompt_tokens": 40, "completion_tokens": 7}


class SlowReader:
    """Stands for the writer and the transport of a connection whose other side reads a little from time to time."""

    def __init__(self, pauses: list[float]) -> None:
        self.transport = self
        self.pauses = pauses
        self.left = 1000
        self.was_cut = False

    def write(self, data: bytes) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        self.was_cut = True

    async def drain(self) -> None:
        while self.pauses:
            await asyncio.sleep(self.pauses[0])
            self.left -= 1
            self.pauses.pop(0)


@pytest.mark.parametrize(("pauses", "is_cut"), [([50.0] * 20, False), ([50.0] * 3 + [500.0], True)])
def test_who_reads_slowly_gets_its_answer_and_who_stops_is_cut_off(pauses: list[float], is_cut: bool) -> None:
    slow = SlowReader(pauses)
    writing = AnswerWriter(cast(Any, None), cast(Any, slow), stall_sec=60.0)
    if is_cut:
        with pytest.raises(NotRead):
            run_virtual(writing.piece(b"x"))
    else:
        run_virtual(writing.piece(b"x"))
    assert slow.was_cut == is_cut


async def deaf(door: OpenDoor, sent: bytes) -> asyncio.StreamWriter:
    """A connection whose answer nobody reads."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel must not take all of it
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", door.port))
    _, writer = await asyncio.open_connection(sock=made, limit=1024)
    cast(Any, writer.transport).pause_reading()
    writer.write(sent)
    return writer


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_an_answer_that_nobody_reads_gives_its_turn_back(tmp_path: Path, streams: bool) -> None:
    content = {"id": "x", "model": "m", "choices": [{"message": {"content": "x" * 7_500_000}}], "usage": USAGE}
    given = answer(200, content)
    if streams:
        given = given.replace(b"application/json", b"text/event-stream")
    pace = ProviderPace(MemoryPace(), "worker", lambda: datetime.now(UTC))
    limits = DoorLimits(stall_sec=0.05)
    async with provider(given) as model, open_door(tmp_path, route(model.url), limits=limits, pace=pace) as door:
        writer = await deaf(door, request(body=json.dumps({**CHAT, "stream": streams}).encode()))
        await eventually(door.noted, "the call ends")
        await eventually(lambda: door.noted()[0].error == "the agent did not read its answer", "and tells why")
        assert sum(lane.report().in_flight for lane in pace._lanes.values()) == 0
        writer.close()


async def test_far_too_many_connections_are_cut_at_once(tmp_path: Path) -> None:
    """Those that are refused with an answer take their time, so there must not be any number of them."""
    limits = DoorLimits(connections=2, head_sec=LIMIT_SEC, linger_sec=LIMIT_SEC)
    async with provider() as model, open_door(tmp_path, route(model.url), limits=limits) as door:
        silent = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(4)]
        await eventually(lambda: door.door.refused == 2, "two are refused with an answer")
        assert await door.send(request()) == b""
        for _, writer in silent:
            writer.close()
        await eventually(lambda: door.door._open == 0, "all are gone")
        assert status(await door.send(request())) == 200


async def test_a_web_page_does_not_reach_a_door_on_this_machine(tmp_path: Path) -> None:
    blind = ["Origin: https://elsewhere.example", "Content-Type: text/plain", "Sec-Fetch-Mode: no-cors"]
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        assert status(await door.send(request(POST_CHAT, *blind))) == 403
        assert status(await door.send(request(POST_CHAT, "Origin: null"))) == 403
        assert model.heard == [] and door.noted() == []


def test_a_browser_inside_a_sandbox_may_call() -> None:
    async def serve(*_: object) -> None: ...

    head = RequestHead("POST", "/v1/chat/completions", (("origin", "http://localhost:3000"),), 0, False)
    Door(Path("/proc/self/ns/net"), serve)._check_origin(head)


@pytest.mark.parametrize("value", ["caf\u00e9 \u2713", "\udcff\udce9", "\ud800", "a\r\nx: y", "\x00"])
def test_any_header_of_a_provider_can_be_written(value: str) -> None:
    text = written("HTTP/1.1 200 OK", (("x-note", value), ("x-last", "1")))
    assert text.count(b"\r\n") == 4 and text.endswith(b"\r\nx-last: 1\r\n\r\n")


async def test_a_header_outside_of_latin_1_passes_as_it_came(tmp_path: Path) -> None:
    note = "X-Note: caf\u00e9 \u2713"
    async with provider(answer(200, {"usage": USAGE}, note)) as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request())
    assert status(told) == 200 and note.lower().encode() in told.lower()
    assert door.noted()[0].error is None
