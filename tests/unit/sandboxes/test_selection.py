"""Asking whether a container engine listens does not stop the event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

from seatrial.sandboxes.selection import engine_answers


async def test_other_work_goes_on_while_the_engine_does_not_take_the_connection() -> None:
    ended: list[str] = []

    async def ask(port: int) -> bool:
        answered = await engine_answers(f"tcp://127.0.0.1:{port}")
        ended.append("engine")
        return answered

    with ExitStack() as opened:
        engine = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full: whoever comes now waits until the time is up
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(engine.getsockname())
        asking = asyncio.create_task(ask(engine.getsockname()[1]))
        for _ in range(20):
            await asyncio.sleep(0)
        ended.append("other work")
        assert not await asking
    assert ended == ["other work", "engine"]


async def test_nothing_listens(tmp_path: Path) -> None:
    assert not await engine_answers(f"unix://{tmp_path}/missing.sock")
    (tmp_path / "file").touch()
    assert not await engine_answers(f"unix://{tmp_path}/file")
