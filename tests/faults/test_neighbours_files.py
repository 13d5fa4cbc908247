"""What one trial leaves behind does not hold up another: a small trial's transfers beside the collection of huge ones.

This measures, and so is run while the machine does nothing else: see ``ALONE`` in the Makefile.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.engine.trials.found_files import SaveLimits
from seatrial.engine.trials.save_files import FileSaver
from seatrial.sandboxes.sandbox import Sandbox
from tests.workplace_fixture import Make

_OFFENDERS = 10
"""More than there are threads for transfers."""
_LITTER = 'mkdir /litter && perl -e \'for (1 .. 1500) { open F, ">", "/litter/$_" or die; print F $_ }\''
_SECRETS = ("sk-canary-0123456789",)

Abuse = Callable[[], Awaitable[object]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "solve.sh").write_text("sleep 0.2\n")
    return tmp_path / "small"


async def test_small_transfers_beside_many_files(make: Make, small: Path, tmp_path: Path) -> None:
    neighbour, offender = await make(), await make()
    assert (await offender.exec(_LITTER)).return_code == 0
    places = itertools.count()

    async def collect() -> None:
        await offender.download_dir("/litter", tmp_path / f"collected-{next(places)}")

    await _compare(lambda: _visit(neighbour, small, tmp_path), collect)


async def test_small_transfers_beside_sparse_files_that_are_redacted(make: Make, small: Path, tmp_path: Path) -> None:
    neighbour = await make()
    saver = FileSaver(FileBlobs.in_directory(tmp_path / "blobs"), SaveLimits(bytes=1 << 50))
    numbers = itertools.count()

    async def keep() -> None:
        number = next(numbers)
        (root := tmp_path / f"tree-{number}").mkdir()
        for part in range(3):
            with (root / f"{part}").open("wb") as sink:
                sink.write(b"data")
                os.truncate(sink.fileno(), 6 << 30)
        kept = await saver.save(f"trials/{number}/1", root, _SECRETS)
        assert len(kept.files) == 3

    await _compare(lambda: _visit(neighbour, small, tmp_path), keep)


async def _visit(sandbox: Sandbox, small: Path, tmp_path: Path) -> None:
    """What Harbor does for a trial that does next to nothing."""
    await sandbox.upload_dir(small, "/solution")
    assert (await sandbox.exec("bash /solution/solve.sh")).return_code == 0
    await sandbox.download_dir("/solution", tmp_path / "visited")


async def _compare(work: Callable[[], Awaitable[None]], abuse: Abuse) -> None:
    """With and without the offenders in turns, and the best of each: while the machine has other things to do, either
    may wait for those."""
    alone, beside = [], []
    for _ in range(6):
        alone.append(min([await _time(work) for _ in range(3)]))
        over = asyncio.Event()
        offenders = [asyncio.create_task(_until(over, abuse)) for _ in range(_OFFENDERS)]
        await asyncio.sleep(1.0)
        beside.append(min([await _time(work) for _ in range(3)]))
        over.set()
        await asyncio.gather(*offenders)
        if min(beside) <= 2 * min(alone):
            return
    assert min(beside) <= 2 * min(alone)


async def _time(work: Callable[[], Awaitable[None]]) -> float:
    began = time.monotonic()
    await work()
    return time.monotonic() - began


async def _until(over: asyncio.Event, abuse: Abuse) -> None:
    while not over.is_set():
        await abuse()
