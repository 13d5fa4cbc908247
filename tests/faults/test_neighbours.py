"""Fault 21 on each sandbox of ours: what one sandbox does to itself does not slow down another.

This measures, and so is run while the machine does nothing else: see ``ALONE`` in the Makefile.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import pytest

from seatrial.sandboxes.sandbox import Sandbox
from tests.faults.test_abuse import BOMB, FILL, HOG
from tests.workplace_fixture import Make

WORK = "perl -e 'my $x = 0; $x += $_ for 1 .. 25_000_000'"
BABBLE = "yes"


@dataclass(frozen=True)
class Neighbourhood:
    """How long the same work took, and how long it took to get rid of the one who disturbs."""

    alone_sec: float
    beside_sec: float
    eviction_sec: float


@pytest.mark.parametrize("abuse", [BOMB, HOG, BABBLE, FILL], ids=["fork bomb", "memory", "output", "disk"])
async def test_neighbours_keep_their_pace(make: Make, abuse: str) -> None:
    measured = await _live_beside(make, abuse)
    assert measured.beside_sec <= 1.5 * measured.alone_sec
    assert measured.eviction_sec < 15


async def _live_beside(make: Make, abuse: str) -> Neighbourhood:
    """With and without the offender in turns, and the best of each: while the machine has other things to do, either
    may wait for those."""
    neighbour, offender = await make(), await make(options={"default_pids": 256}, storage_mb=600)
    alone, beside = [], []
    for _ in range(10):
        alone.append(await _time(neighbour))
        abusing = asyncio.create_task(_abuse(offender, abuse))
        await asyncio.sleep(0.3)
        beside.append(await _time(neighbour))
        abusing.cancel()
        await asyncio.gather(abusing, return_exceptions=True)
        if min(beside) <= 1.5 * min(alone):
            break
    began = time.monotonic()
    await offender.stop(delete=True)
    return Neighbourhood(min(alone), min(beside), time.monotonic() - began)


async def _time(sandbox: Sandbox) -> float:
    began = time.monotonic()
    assert (await sandbox.exec(WORK)).return_code == 0
    return time.monotonic() - began


async def _abuse(sandbox: Sandbox, command: str) -> None:
    while True:
        try:
            await sandbox.exec(command, timeout_sec=30)
        except RuntimeError:  # timed out, as it should
            continue
