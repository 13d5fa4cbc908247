"""The kernel's wire format and the names by which leftovers are found."""

from __future__ import annotations

import os
import subprocess

import pytest

from seatrial.sandboxes.network import links
from seatrial.sandboxes.network.netlink import (
    ROUTE,
    Message,
    NetlinkError,
    NetlinkSocket,
    attribute,
    attributes,
    nested,
    text,
)
from seatrial.sandboxes.network.uplink import ProcessStamp


def test_attributes_come_back_as_they_went() -> None:
    packed = text(3, "abc") + nested(18, text(1, "veth"), attribute(2, b"12345")) + attribute(5, b"")
    found = attributes(packed)
    assert found[3] == b"abc\0"
    assert attributes(found[18]) == {1: b"veth\0", 2: b"12345"}
    assert found[5] == b""


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x00\x00\x01\x00", b"\x02\x00\x01\x00rest"])
def test_broken_attributes_end_the_list(data: bytes) -> None:
    assert attributes(data) == {}


def test_the_kernel_lists_the_loopback_and_its_address() -> None:
    with NetlinkSocket(ROUTE) as kernel:
        assert [link.name for link in links.list_links(kernel) if link.index == links.LOOPBACK] == ["lo"]
        assert "127.0.0.1" in map(str, links.list_addresses(kernel))


def test_a_refusal_says_which_request_it_was() -> None:
    with NetlinkSocket(ROUTE) as kernel:
        with pytest.raises(NetlinkError) as refused:
            kernel.request([Message(18, b"\0\0\0\0\1" + b"\0" * 11), Message(19, b"\0" * 16)])
        assert refused.value.request == 1
        kernel.request([])


def test_a_stamp_tells_the_living_from_the_dead() -> None:
    mine = ProcessStamp.of_this_process("my home!")
    assert ProcessStamp.parse(str(mine)) == mine
    assert mine.install == "myhome"
    assert not mine.dead
    assert dead(mine, started=mine.process.started - 1)  # the number was given to another process since
    child = subprocess.Popen(["sleep", "60"])
    child.kill()
    child.wait()
    assert dead(mine, pid=child.pid)
    assert not dead(mine, pid=child.pid, namespace=mine.process.namespace + 1)


def dead(stamp: ProcessStamp, **changes: int) -> bool:
    """Whether the same stamp with another process would be called dead."""
    return stamp.model_copy(update={"process": stamp.process.model_copy(update=changes)}).dead


@pytest.mark.parametrize("words", ["", "decoy", "a_p1_s2", "a_p1_s2_n3_x", "a_px_s2_n3", "_p1_s2_n3"])
def test_other_names_are_no_stamps(words: str) -> None:
    assert ProcessStamp.parse(words) is None
    assert ProcessStamp.parse(f"a_p{os.getpid()}_s2_n3") is not None
