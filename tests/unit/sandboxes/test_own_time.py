"""No clock of a trial runs while somebody waits for us."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.sandboxes.own_time import OwnTime, clock_stopped
from tests.virtual_time import run_virtual


async def kept_waiting(seconds: float) -> None:
    with clock_stopped():
        await asyncio.sleep(seconds)


def test_a_limit_does_not_run_while_its_holder_is_kept_waiting() -> None:
    """Waits many times as long as the limit allows, and is within it."""

    async def waits() -> float:
        async with OwnTime(0.2) as clock:
            await kept_waiting(4)
            async with asyncio.TaskGroup() as group:  # in tasks of its own, too, and several at once
                for _ in range(3):
                    group.create_task(kept_waiting(4))
        return clock.waited_sec

    assert run_virtual(waits()) == 8


def test_a_limit_runs_while_its_holder_works() -> None:
    async def works() -> None:
        async with OwnTime(5):
            await kept_waiting(3)
            await asyncio.sleep(4)  # within the limit, whatever it waited before
            await asyncio.sleep(2)

    with pytest.raises(TimeoutError):
        run_virtual(works())


def test_who_waits_beyond_the_end_of_a_limit_disturbs_nobody() -> None:
    async def waits_longer() -> None:
        async with OwnTime(60):
            late = asyncio.create_task(kept_waiting(90))
            await asyncio.sleep(0)
        await late
        async with OwnTime(None), asyncio.timeout(60):
            await kept_waiting(0)

    run_virtual(waits_longer())
