"""Asking whether a container engine listens does not stop the event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from seatrial.domain.task import Task, TaskFormat
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import SandboxSelection, engine_answers


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
        await asyncio.sleep(0)  # the question begins; whatever answers it comes in a later turn of the loop
        ended.append("other work")
        assert not await asking
    assert ended == ["other work", "engine"]


async def test_nothing_listens(tmp_path: Path) -> None:
    assert not await engine_answers(f"unix://{tmp_path}/missing.sock")
    (tmp_path / "file").touch()
    assert not await engine_answers(f"unix://{tmp_path}/file")


class BusyAtFirst(SandboxSelection):
    """The machine has no file descriptor left when it is first examined."""

    examined = 0

    async def _find(self) -> str:
        self.examined += 1
        if self.examined == 1:
            raise OSError(24, "Too many open files")
        return "oci"


async def test_an_examination_that_failed_is_made_again_and_another_one_is_not(tmp_path: Path) -> None:
    task = Task(digest="sha256:" + "0" * 64, name="small", format=TaskFormat.HARBOR, instruction="Do it.")
    selection = BusyAtFirst(SandboxOptions(cache=tmp_path))
    with pytest.raises(OSError, match="Too many"):
        await selection.choose("auto", task)
    assert [await selection.choose("auto", task) for _ in range(3)] == ["oci"] * 3
    assert selection.examined == 2
