"""The count that stands for a time limit sees loops, comprehensions, calls and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.counted_work import counted_work


def loop(rounds: int) -> None:
    for _ in range(rounds):
        pass


def comprehension(rounds: int) -> None:
    _ = [number for number in range(rounds)]  # noqa: C416


def thread(rounds: int) -> None:
    working = threading.Thread(target=loop, args=(rounds,))
    working.start()
    working.join()


@pytest.mark.parametrize("work", [loop, comprehension, thread])
def test_work_is_counted_wherever_it_is_done(work: Callable[[int], None]) -> None:
    with counted_work() as little:
        work(10)
    with counted_work() as much:
        work(100_000)
    # Far apart: a thread of the test run that wakes up meanwhile is counted, too.
    assert little.steps < 20_000 < 90_000 < much.steps < 1_000_000
