"""When a sandbox that fills the disk is acted upon."""

from __future__ import annotations

import asyncio

from seatrial.sandboxes.host.storage import Allowance, StorageLimit


def told(*sizes: int) -> list[tuple[int, bool]]:
    """By an allowance of 100, which overlooks a growth of 10."""
    found: list[tuple[int, bool]] = []
    allowance = Allowance(100, lambda size, in_danger: found.append((size, in_danger)), growth=10)
    for size in sizes:
        allowance.judge(size)
    return found


def test_too_much_is_told_once() -> None:
    assert told(99, 100) == []
    assert told(99, 101, 101, 111) == [(101, False)]


def test_what_was_written_before_the_writer_was_killed_is_not_held_against_the_next() -> None:
    assert told(101, 150, 150, 160) == [(101, False)]


def test_whoever_goes_on_writing_is_killed_again() -> None:
    assert told(101, 130, 160) == [(101, False), (160, False)]
    assert told(101, 105, 112) == [(101, False), (112, False)]


def test_danger_is_always_told() -> None:
    assert told(101, 201, 202) == [(101, False), (201, True), (202, True)]


async def test_nobody_is_killed_for_what_was_written_while_a_busy_machine_still_killed_the_writer() -> None:
    killed: list[str] = []
    gone = asyncio.Event()

    async def kill() -> None:
        await gone.wait()
        killed.append("the writer")

    async def remove() -> None:
        killed.append("the sandbox")

    limit = StorageLimit(100, kill, remove)
    for size in (110, 150):
        limit.exceeded(size << 20, False)
    gone.set()
    await limit.settled()
    limit.exceeded(190 << 20, False)
    await limit.settled()
    assert (killed, limit.exceeded_mb) == (["the writer"], 190)
    limit.exceeded(199 << 20, False)
    await limit.settled()
    assert killed == ["the writer"] * 2, "who goes on is killed again"
    limit.exceeded(210 << 20, True)
    await limit.settled()
    assert killed[-1] == "the sandbox"
