"""Threads for blocking work of many trials. Short work never waits for long work.

Work starts in one of a few quick places. If it takes longer than a time slice, it gives its place up and continues only
with one of very few tickets, which all long work shares in turn. So a trial with 50,000 files does not delay a trial
with three, and few threads compete for the interpreter's lock.

Used for sandboxes, for saving files and for object storage. Long work must call ``yield_turn`` regularly, for example
after each file or megabyte. Otherwise it keeps its quick place until it ends.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

_SLICE_SEC = 0.03
_MOST_THREADS = 1024
_here = threading.local()


def yield_turn() -> None:
    """Lets other work continue if the time slice of this thread is over. Cheap."""
    turn: _Turn | None = getattr(_here, "turn", None)
    if turn is not None:
        turn.yield_turn()


class FairThreads:
    """Runs ``quick`` pieces of work at once, and in addition ``long`` pieces that took longer than a time slice."""

    def __init__(
        self,
        name: str,
        quick: int,
        long: int = 2,
        settle: Callable[[], None] | None = None,
        slice_sec: float = _SLICE_SEC,
    ) -> None:
        """``settle`` is called in each thread as it starts."""
        self.slice_sec = slice_sec
        self.tickets = Tickets(long)
        self._threads = ThreadPoolExecutor(_MOST_THREADS, name, settle or _nothing)
        # Until a new thread has called ``settle``, it shares its view of the file system with the thread that started
        # it. A thread that is entering a mount namespace must not share it, so only this one starts threads.
        self._starter = ThreadPoolExecutor(1, f"{name}-starter")
        self._has_starter = False
        self._lock = threading.Lock()
        self._free = quick
        self._waiting: deque[Callable[[], None]] = deque()

    async def run[**P, T](self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Work that has started runs to its end, even if the caller is cancelled."""
        future: Future[T] = Future()
        self._submit(partial(self._work, future, partial(work, *args, **kwargs)))
        return await asyncio.wrap_future(future)

    def give_place_back(self) -> None:
        with self._lock:
            following = self._waiting.popleft() if self._waiting else None
            if following is None:
                self._free += 1
        if following is not None:
            self._starter.submit(self._threads.submit, following)

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if not self._has_starter:  # started by the caller, never by one of these threads
                self._starter.submit(_nothing)
                self._has_starter = True
            if self._free == 0:
                self._waiting.append(work)
                return
            self._free -= 1
        self._threads.submit(work)

    def _work(self, future: Future[Any], work: Callable[[], Any]) -> None:
        _here.turn = turn = _Turn(self)
        try:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
        finally:
            _here.turn = None
            turn.end()


class Tickets:
    """Limits how many threads continue at once, in order of arrival."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()

    def take(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Event()
            self._queue.append(turn)
        turn.wait()

    def give_back(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._free += 1


class _Turn:
    """The current work of one thread."""

    def __init__(self, pool: FairThreads) -> None:
        self._pool = pool
        self._has_ticket = False
        self._began = time.monotonic()

    def yield_turn(self) -> None:
        if time.monotonic() - self._began < self._pool.slice_sec:
            return
        self._leave()
        self._has_ticket = True
        self._pool.tickets.take()
        self._began = time.monotonic()

    def end(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._has_ticket:
            self._pool.tickets.give_back()
        else:
            self._pool.give_place_back()


def _nothing() -> None:
    return None
