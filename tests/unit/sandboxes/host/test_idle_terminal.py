"""An idle terminal is no work of an agent; everything that runs in it, or beside it, is."""

from __future__ import annotations

import os

import pytest

from seatrial.sandboxes.host.idle_terminal import Seen, lasting, look

TERMINAL = {
    10: Seen("tmux: server", 1, False),
    11: Seen("bash", 10, False),
    12: Seen("ld.so", 11, True),
    13: Seen("sh", 12, False),
    14: Seen("bash", 13, True),
    15: Seen("sh", 10, False),
    16: Seen("cat", 15, False),
}


def test_an_idle_terminal_does_not_last() -> None:
    assert lasting(TERMINAL) == set()
    assert lasting({}) == set()


@pytest.mark.parametrize(
    "more",
    [
        {20: Seen("python3", 14, False)},  # a service in the background of its shell
        {20: Seen("python3", 1, False)},  # one that detached itself
        {20: Seen("bash", 14, False)},  # a loop of the shell
        {20: Seen("bash", 1, True)},  # a shell on a terminal of its own
        {20: Seen("cat", 14, False)},
        {20: Seen("sleep", 13, True)},
        {20: Seen("nginx", 10, False)},  # started by tmux itself
    ],
)
def test_everything_else_lasts(more: dict[int, Seen]) -> None:
    assert 20 in lasting(TERMINAL | more)


def test_processes_that_are_their_own_ancestors_end_the_search() -> None:
    assert lasting({10: Seen("tmux", 11, False), 11: Seen("bash", 10, False), 12: Seen("sh", 12, False)}) == {12, 11}


def test_this_process_is_seen() -> None:
    assert look([os.getpid(), 2**22 + 1]).keys() == {os.getpid()}
