"""Output of commands: bounded, lossless below the bound, and never in the way of whoever writes it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios

import pytest

from seatrial.sandboxes.output import BoundedOutput, Pipe
from tests.waiting import LIMIT_SEC, eventually


async def emptied(pipe: int) -> None:
    """Until everything that was written has been read."""

    def unread() -> int:
        (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
        return int(count)

    await eventually(lambda: not unread(), "an empty pipe")


def test_everything_is_kept_below_the_bound() -> None:
    kept = BoundedOutput(head=4, tail=4)
    for piece in (b"ab", b"cd", b"ef", b"gh"):
        kept.add(piece)
    assert kept.text == "abcdefgh" and not kept.overflows


def test_gap_is_said() -> None:
    kept = BoundedOutput(head=4, tail=4)
    for letter in "abcdefghijklmnop":
        kept.add(letter.encode())
    assert kept.text == "abcd\n[seatrial: 8 bytes of output left out here]\nmnop" and kept.overflows


def test_character_on_the_seam_survives() -> None:
    kept = BoundedOutput(head=3, tail=10)
    kept.add("ää".encode())
    assert kept.text == "ää"


def test_bytes_that_are_no_text_are_replaced() -> None:
    kept = BoundedOutput()
    kept.add(b"a\xff\xfeb")
    assert kept.text == "a\ufffd\ufffdb"


async def test_listener_gets_whole_characters_in_order() -> None:
    heard: list[str] = []

    async def listen(text: str, _: str) -> None:
        await asyncio.sleep(0)
        heard.append(text)

    ours, theirs = os.pipe()
    stream = Pipe(ours, "stdout", listen)
    draining = asyncio.create_task(stream.drain())
    for byte in "grün".encode():
        os.write(theirs, bytes([byte]))
        await emptied(ours)
    os.close(theirs)
    await draining
    assert "".join(heard) == "grün" and stream.settle() == "grün"


async def test_after_settling_writers_neither_block_nor_die() -> None:
    ours, theirs = os.pipe()
    stream = Pipe(ours, "stdout")
    draining = asyncio.create_task(stream.drain())
    os.write(theirs, b"kept")
    await emptied(ours)
    assert stream.settle() == "kept"
    for _ in range(40):
        await asyncio.to_thread(os.write, theirs, b"x" * 65536)
    os.close(theirs)
    await asyncio.wait_for(draining, LIMIT_SEC)


async def test_cancelled_stream_closes_its_pipe() -> None:
    ours, theirs = os.pipe()
    draining = asyncio.create_task(Pipe(ours, "stdout").drain())
    await asyncio.sleep(0)  # it waits for the pipe by now
    draining.cancel()
    await asyncio.gather(draining, return_exceptions=True)
    with pytest.raises(OSError):
        os.fstat(ours)
    os.close(theirs)
