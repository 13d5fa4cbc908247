"""No clock runs while somebody waits for us. In virtual time, so that a busy machine adds nothing to it."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.sandboxes.own_time import OwnTime, clock_stopped, own_limit
from tests.virtual_time import run_virtual


async def kept_waiting(seconds: float) -> None:
    with clock_stopped():
        await asyncio.sleep(seconds)


def test_a_limit_does_not_run_while_its_holder_is_kept_waiting() -> None:
    """Waits four times as long as the limit allows, works for nearly all of it, and is within it."""

    async def work() -> None:
        async with OwnTime(20) as clock:
            assert own_limit() is clock
            await kept_waiting(40)
            await asyncio.sleep(10)
            async with asyncio.TaskGroup() as group:  # in tasks of its own, too, and several at once
                for _ in range(3):
                    group.create_task(kept_waiting(40))
            await asyncio.sleep(9)
            assert clock.left_sec == pytest.approx(1)
        assert clock.waited_sec == pytest.approx(80)

    run_virtual(work())


def test_a_limit_runs_while_its_holder_works() -> None:
    async def work() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with OwnTime(20):
                await asyncio.sleep(5)
                await kept_waiting(3)
                await asyncio.sleep(3600)
        return asyncio.get_running_loop().time() - began

    assert run_virtual(work()) == pytest.approx(23)


def test_who_waits_beyond_the_end_of_a_limit_disturbs_nobody() -> None:
    async def work() -> None:
        async with OwnTime(60):
            late = asyncio.create_task(kept_waiting(100))
            await asyncio.sleep(0)
        await late
        async with OwnTime(None) as endless, asyncio.timeout(60):
            await kept_waiting(1)
        assert endless.left_sec is None

    run_virtual(work())
