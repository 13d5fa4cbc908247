"""Memory for bodies: shared fairly, waited for, and given back."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.gateway.body_memory import BodyMemory


async def test_a_door_has_its_share_whatever_another_one_holds() -> None:
    memory = BodyMemory(100)
    memory.enter("greedy")
    memory.enter("modest")
    holds = [await memory.hold("greedy", 25) for _ in range(3)]
    waiting = asyncio.create_task(memory.hold("greedy", 25))
    await asyncio.sleep(0)
    assert not waiting.done()
    with await memory.hold("modest", 25):  # its half of one half
        assert memory.held == 100
    holds[0].release()
    (await waiting).release()
    for hold in holds:
        hold.release()
    assert memory.held == 0


async def test_all_doors_together_never_hold_more_than_the_whole() -> None:
    """The first takes all that it gets, and each of the others still has its share."""
    memory = BodyMemory(10_000)
    for door in range(50):
        memory.enter(door)
    for door in range(50):
        while memory.take(door, 1) is not None:
            pass
        assert memory._held[door] >= 100
    assert memory.held == 10_000


async def test_a_text_that_is_larger_than_its_bytes_takes_more() -> None:
    memory = BodyMemory(100)
    for door in ("a", "b", "c"):
        memory.enter(door)
    with await memory.hold("a", 30) as one, await memory.hold("b", 10) as other:
        assert one.resize(60) and memory.held == 70
        assert other.resize(40) and memory.held == 100  # also of the shares of others
        assert not other.resize(41) and memory.held == 100
        waiting = asyncio.create_task(memory.hold("c", 30))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert one.resize(1)
        with await waiting:
            assert memory.held == 71
    assert memory.held == 0


async def test_the_only_body_of_all_may_become_larger_than_the_room() -> None:
    memory = BodyMemory(100)
    with await memory.hold("a", 90) as alone:
        assert alone.resize(360) and memory.held == 360
    assert memory.held == 0


async def test_a_body_larger_than_the_room_passes_alone() -> None:
    memory = BodyMemory(100)
    memory.enter("a")
    memory.enter("b")
    with await memory.hold("a", 1000):
        other = asyncio.create_task(memory.hold("b", 60))
        await asyncio.sleep(0)
        assert not other.done()
    (await other).release()


async def test_who_stops_waiting_takes_nothing() -> None:
    memory = BodyMemory(100)
    memory.enter("a")
    first = await memory.hold("a", 100)
    waiting = asyncio.create_task(memory.hold("a", 100))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.release()
    first.release()  # twice is once
    assert memory.held == 0


async def test_who_is_let_in_and_stops_at_the_same_moment_gives_back() -> None:
    memory = BodyMemory(100)
    memory.enter("a")
    first = await memory.hold("a", 100)
    waiting = asyncio.create_task(memory.hold("a", 100))
    await asyncio.sleep(0)
    first.release()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert memory.held == 0


async def test_a_door_that_closes_leaves_its_share_to_the_others() -> None:
    memory = BodyMemory(100)
    for door in ("a", "b", "c"):
        memory.enter(door)
    held = await memory.hold("b", 50)
    waiting = asyncio.create_task(memory.hold("a", 40))
    await asyncio.sleep(0)
    assert not waiting.done()
    memory.leave("c")
    (await waiting).release()
    held.release()


async def test_answers_grow_as_long_as_there_is_room() -> None:
    memory = BodyMemory(100)
    memory.enter("a")
    with memory.empty("a") as hold:
        assert hold.grow(60) and not hold.grow(60) and hold.grow(40)
    assert memory.held == 0
