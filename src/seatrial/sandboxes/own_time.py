"""A time limit for an agent or verifier that does not include the time it waits for the worker.

``runner_harbor`` puts it around an agent, its setup and a verifier. ``PrivateMounts`` stops the clock while their
command or transfer waits for a thread and runs in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from functools import partial
from typing import Any, Self

_current: ContextVar[OwnTime | None] = ContextVar("own_time", default=None)


@contextmanager
def clock_stopped() -> Iterator[None]:
    """The caller's time limit does not run meanwhile."""
    with stopped(_current.get()):
        yield


def own_limit() -> OwnTime | None:
    """The caller's time limit, if it has one."""
    return _current.get()


def own_clock() -> Callable[[], AbstractContextManager[None]]:
    """``clock_stopped`` of the caller's time limit, for other tasks that work for the caller."""
    return partial(stopped, _current.get())


@contextmanager
def stopped(clock: OwnTime | None) -> Iterator[None]:
    if clock is None:
        yield
        return
    clock.stop()
    try:
        yield
    finally:
        clock.go_on()


class OwnTime:
    """``async with`` it; raises ``TimeoutError`` when the time is up. ``None`` is no limit."""

    def __init__(self, limit_sec: float | None) -> None:
        self._limit_sec = limit_sec
        self._timeout = asyncio.timeout(limit_sec)
        self._stops = 0
        self._stopped_at = 0.0
        self._deadline: float | None = None
        self._ended = False
        self._token: Token[OwnTime | None] | None = None
        self.waited_sec = 0.0
        """How long the clock was stopped."""

    def stop(self) -> None:
        self._stops += 1
        if self._stops == 1 and self._is_running:
            self._stopped_at = asyncio.get_running_loop().time()
            self._deadline = self._timeout.when()
            self._timeout.reschedule(None)

    def go_on(self) -> None:
        self._stops -= 1
        if self._stops == 0 and self._is_running and self._deadline is not None:
            waited = asyncio.get_running_loop().time() - self._stopped_at
            self.waited_sec += waited
            self._timeout.reschedule(self._deadline + waited)

    @property
    def left_sec(self) -> float | None:
        """What is left of the time; ``None`` without a limit. It stays the same while the clock stands."""
        deadline = self._deadline if self._stops else self._timeout.when()
        if self._limit_sec is None or deadline is None:
            return None
        now = self._stopped_at if self._stops else asyncio.get_running_loop().time()
        return max(deadline - now, 0.0)

    @property
    def _is_running(self) -> bool:
        return self._limit_sec is not None and not self._ended and not self._timeout.expired()

    async def __aenter__(self) -> Self:
        self._token = _current.set(self)
        await self._timeout.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self._ended = True
        if self._token is not None:
            _current.reset(self._token)
        await self._timeout.__aexit__(*failure)
