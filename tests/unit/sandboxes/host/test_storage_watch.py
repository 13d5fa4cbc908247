"""Storage is watched for as long as there are sandboxes, whatever happens to one look or to one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seatrial.sandboxes.host.storage import Meter, StorageLimit, StorageWatch
from tests.waiting import eventually

LIMIT = 100


class Sandbox:
    """Says what it takes, or cannot be asked."""

    def __init__(self) -> None:
        self.size = 0
        self.fault: Exception | None = None
        self.told: list[int] = []

    def measure(self) -> int:
        if self.fault is not None:
            raise self.fault
        return self.size

    def notice(self) -> int:
        if self.fault is not None:
            raise self.fault
        return 0


@asynccontextmanager
async def watching(place: Path, **meters: Sandbox) -> AsyncIterator[StorageWatch]:
    """Measures all at every look, however little room other tests leave on the disk."""
    watch = StorageWatch(place, interval_sec=0.01, growth=0, reserve=0)
    for name, sandbox in meters.items():
        meter: Meter = sandbox
        watch.add(name, meter, LIMIT, lambda size, danger, told=sandbox.told: told.append(size))  # type: ignore[misc]
    try:
        yield watch
    finally:
        for name in meters:
            watch.remove(name)
        watch.close()


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), KeyError("a bug")], ids=["disk", "bug"])
async def test_a_sandbox_that_cannot_be_measured_leaves_the_others_their_limits(
    tmp_path: Path, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    older, newer = Sandbox(), Sandbox()
    newer.fault = fault  # the newest is asked first
    async with watching(tmp_path, older=older, newer=newer):
        older.size = newer.size = 150
        await eventually(lambda: older.told == [150], "the other is told")
        await eventually(lambda: any("Storage of newer failed" in said for said in caplog.messages), "the log says it")
        assert not newer.told
        newer.fault = None
        await eventually(lambda: newer.told == [150], "its own limit holds again")


async def test_a_file_system_that_cannot_be_asked_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox, place = Sandbox(), tmp_path / "mounted later"
    async with watching(place, only=sandbox):
        sandbox.size = 150
        await eventually(lambda: any("Storage watch failed" in said for said in caplog.messages), "the log says it")
        assert not sandbox.told
        place.mkdir()
        await eventually(lambda: sandbox.told == [150], "it is told")


async def test_a_removal_that_failed_is_tried_again() -> None:
    tried: list[str] = []

    async def remove() -> None:
        tried.append("removed")
        if len(tried) == 1:
            raise OSError(16, "Device or resource busy")

    limit = StorageLimit(1, remove, remove)
    for _ in range(3):
        limit.exceeded(9 << 20, True)
        await limit.settled()
        assert limit.removed_because, "no command runs in it, whether it is gone or not"
    assert len(tried) == 2, "until it is gone, and not again"
