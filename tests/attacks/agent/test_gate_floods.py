"""An agent that sends large bodies: they fill neither the memory nor the loop of its worker."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from seatrial.gateway import gate
from seatrial.gateway.body_memory import BodyMemory
from seatrial.gateway.wire import JsonObject
from tests.gate_doors import CHAT as BODY
from tests.gate_doors import open_door, provider, request, route, status
from tests.waiting import eventually


async def test_large_bodies_of_one_sandbox_wait_and_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Ten bodies that are sent slowly hold no more than the limit; a small call through another door passes."""
    memory, large = BodyMemory(3_000_000), json.dumps({**BODY, "pad": "x" * 1_000_000}).encode()
    (tmp_path / "other").mkdir()
    async with (
        provider(waits=True) as slow,
        provider() as model,
        open_door(tmp_path, route(slow.url), memory=memory) as greedy,
        open_door(tmp_path / "other", route(model.url), memory=memory) as modest,
    ):
        sending = [asyncio.create_task(greedy.send(request(body=large))) for _ in range(10)]
        while len(slow.heard) < 2:
            await asyncio.sleep(0.01)
        assert status(await modest.send(request())) == 200
        assert memory.held <= 3_000_000
        slow.waits.set()
        assert [status(await each) for each in sending] == [200] * 10
    assert memory.held == 0


async def test_one_wide_character_counts_for_the_whole_text(tmp_path: Path) -> None:
    """It makes the text in memory four times as large as the bytes that were sent."""
    (tmp_path / "other").mkdir()
    memory, sent = BodyMemory(1_000_000), json.dumps({**BODY, "pad": "x" * 200_000 + "\U0001f600"}, ensure_ascii=False)
    async with (
        provider(waits=True) as model,
        open_door(tmp_path, route(model.url), memory=memory) as door,
        open_door(tmp_path / "other", route(model.url), memory=memory) as other,
    ):
        first = asyncio.create_task(other.send(request(body=json.dumps({**BODY, "pad": "x" * 250_000}).encode())))
        await eventually(lambda: model.heard, "another body is held")
        assert status(await door.send(request(body=sent.encode()))) == 503 and memory.held < 300_000
        model.waits.set()
        assert status(await first) == 200
        assert status(await door.send(request(body=sent.encode()))) == 200
    assert memory.held == 0


async def test_large_bodies_are_read_one_at_a_time_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are refused. Small ones stay in the loop, where they are read sooner."""
    read, lock, at_once, places = gate.read_object, threading.Lock(), list[bool](), list[tuple[bool, bool]]()

    def noting(body: bytes) -> JsonObject:
        in_loop = threading.current_thread() is threading.main_thread()
        places.append((len(body) > 262_144, in_loop))
        if in_loop:
            return read(body)
        at_once.append(not lock.acquire(blocking=False))
        try:
            return read(body)
        finally:
            if not at_once[-1]:
                lock.release()

    monkeypatch.setattr(gate, "read_object", noting)
    large = request(body=json.dumps({**BODY, "pad": "x" * 400_000}).encode())
    refused = request(body=json.dumps({**BODY, "model": "other", "pad": [1] * 100_000}).encode())
    async with provider() as model, open_door(tmp_path, route(model.url)) as door:
        sending = [door.send(data) for data in (large, refused, large, refused, request())]
        assert [status(each) for each in await asyncio.gather(*sending)] == [200, 404, 200, 404, 200]
    assert sorted(places) == [(False, True)] + [(True, False)] * 4
    assert not any(at_once)
