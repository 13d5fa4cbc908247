"""A container engine that fails during a sweep: daemonless sandboxes are still removed, and the fault is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.sweep import sweep
from seatrial.system.processes import ProcessIdentity

pytestmark = pytest.mark.sandbox

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FAULTS = {
    "gone before the answer": [b""],
    "gone within the answer": [OK + b'Content-Length: 90\r\n\r\n[{"Names": '],
    "an error": [b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nbusy"],
    "an answer that is no list": [OK + b"Content-Length: 12\r\n\r\n[{broken...."],
    "gone after the first list": [OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n[]", b""],
}


@asynccontextmanager
async def _engine(directory: Path, answers: list[bytes]) -> AsyncIterator[str]:
    """Something that accepts connections, gives these answers to requests, one each, and then nothing."""
    left = iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1 << 16):  # the probe that only connects sends nothing
            writer.write(next(left, b""))
            await writer.drain()
        writer.close()

    place = directory / "engine.sock"
    async with await asyncio.start_unix_server(serve, place):
        yield f"unix://{place}"


@pytest.fixture
def leftover(tmp_path: Path) -> Callable[[bool], Path]:
    """Makes the directory of a sandbox whose process lives, or is gone."""

    def make(lives: bool) -> Path:
        me = ProcessIdentity.mine()
        process = me if lives else me.model_copy(update={"started": me.started + 1})  # the number is used again
        directory = tmp_path / "run" / f"st-{'living' if lives else 'gone'}"
        directory.mkdir(parents=True)
        owner = Owner(install="other", trial=1, try_number=1)
        record = SandboxRecord(sandbox=directory.name, owner=owner, process=process, created_at=datetime.now(UTC))
        record.write(directory)
        return directory

    return make


async def _no_leases() -> set[tuple[int, int]]:
    return set()


@pytest.mark.parametrize("answers", FAULTS.values(), ids=FAULTS.keys())
async def test_other_sandboxes_are_swept(
    tmp_path: Path, leftover: Callable[[bool], Path], caplog: pytest.LogCaptureFixture, answers: list[bytes]
) -> None:
    gone, living = leftover(False), leftover(True)
    async with _engine(tmp_path, answers) as host:
        with caplog.at_level(logging.WARNING, "seatrial.sandboxes.sweep"):
            assert await sweep(SandboxOptions(cache=tmp_path, docker_host=host), "ours", _no_leases) == 1
    assert not gone.exists() and living.exists()
    assert [record for record in caplog.records if "containers of sandboxes" in record.message]


async def test_engine_without_a_fault_is_not_mentioned(
    tmp_path: Path, leftover: Callable[[bool], Path], caplog: pytest.LogCaptureFixture
) -> None:
    gone = leftover(False)
    empty = OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n[]"
    async with _engine(tmp_path, [empty, empty]) as host:
        assert await sweep(SandboxOptions(cache=tmp_path, docker_host=host), "ours", _no_leases) == 1
    assert not gone.exists()
    assert not caplog.records
