"""Waits for what a test expects to happen, however slow the machine is.

The limit only ends a test that would otherwise hang. No test asserts that something is quick by giving a small one.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

LIMIT_SEC = 180.0
"""Many times what anything takes on a machine of its own, and less than the limit of a whole test."""
_LOOK_SEC = 0.1
_LOOK_INSIDE_SEC = 0.01
"""Looks within one process cost less than those at files, processes and servers."""


def until(met: Callable[[], object], what: str, seconds: float = LIMIT_SEC) -> float:
    """Waits for a condition. Returns how many seconds that took, for those who compare two waits."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(_LOOK_SEC)
    return time.monotonic() - began


async def eventually(met: Callable[[], object | Awaitable[object]], what: str, seconds: float = LIMIT_SEC) -> None:
    """The same on an event loop, which goes on meanwhile. The condition may be a coroutine function."""
    began = time.monotonic()
    while True:
        found = met()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(_LOOK_INSIDE_SEC)
