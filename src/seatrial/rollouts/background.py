"""An event loop in its own thread, so that sandboxes do not depend on the caller's loop.

A trainer may use several loops in turn, or none, and may block its loop for seconds. ``RolloutHost`` does all its work
here; callers await it from any loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


class BackgroundLoop:
    """Starts with the first call. A daemon thread, so it never keeps a program from exiting."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Runs ``work`` and returns its result. Cancelling the caller cancels the work, which then cleans up."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    def wait[T](self, work: Coroutine[Any, Any, T]) -> T:
        """The same for callers without a loop; blocks."""
        return asyncio.run_coroutine_threadsafe(work, self._running()).result()

    def stop(self) -> None:
        """Ends the thread if it started. The owners of all work have already waited for it."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
