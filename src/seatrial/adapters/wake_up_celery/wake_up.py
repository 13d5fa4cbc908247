"""The wake-up of a fleet with Redis."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable

from kombu.exceptions import OperationalError

from seatrial.adapters.wake_up_celery.app import QUEUE, celery_app, hint_of
from seatrial.adapters.wake_up_celery.receiver import Receiver
from seatrial.domain.trial import Trial

log = logging.getLogger(__name__)

MOST_HINTS = 1000
"""Hints of one announcement. Workers that were woken ask the store again after each trial, so more would only wait."""
_RETRY = {"max_retries": 1, "interval_start": 0.1}


class CeleryWakeUp:
    """One per process and event loop. It receives hints from the first ``wait`` on."""

    def __init__(self, broker_url: str, worker: str = "", capacity: int = 1) -> None:
        self._app = celery_app(broker_url)
        self._worker = worker
        self._capacity = capacity
        self._receiver: Receiver | None = None
        self._hints: deque[Callable[[], None]] = deque()
        self._arrived = asyncio.Event()
        self._was_woken = False

    async def announce(self, trials: int = 1) -> None:
        """Sends a hint for each trial. Raises nothing: whoever is not woken asks the store a moment later."""
        try:
            await asyncio.to_thread(self._send, min(max(trials, 1), MOST_HINTS))
        except (OperationalError, OSError) as fault:
            log.warning("The broker did not take the hint: %s", fault)

    async def wait(self, timeout: float) -> None:
        """A hint that woke this worker before is used up now, whether it led to a trial or not."""
        self._listen()
        if self._was_woken and self._hints:
            self._hints.popleft()()
        self._was_woken = False
        if not self._hints:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
        self._was_woken = bool(self._hints)

    def runs(self, trial: Trial) -> None:
        if self._receiver is not None:
            self._receiver.show(_key(trial), _facts(trial))

    def ended(self, trial: Trial) -> None:
        if self._receiver is not None:
            self._receiver.hide(_key(trial), "ended")

    async def close(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await asyncio.to_thread(receiver.stop)
        self._app.close()

    def _send(self, hints: int) -> None:
        task = hint_of(self._app)
        with self._app.producer_pool.acquire(block=True) as producer:
            for _ in range(hints):
                task.apply_async(producer=producer, queue=QUEUE, retry=True, retry_policy=_RETRY)

    def _listen(self) -> None:
        if self._receiver is None:
            loop = asyncio.get_running_loop()
            self._receiver = Receiver(
                self._app, self._worker, self._capacity, lambda use_up: loop.call_soon_threadsafe(self._heard, use_up)
            )
            self._receiver.start()

    def _heard(self, use_up: Callable[[], None]) -> None:
        self._hints.append(use_up)
        self._arrived.set()


def _key(trial: Trial) -> str:
    return f"trial-{trial.id}.{trial.try_number}"


def _facts(trial: Trial) -> dict[str, object]:
    return {
        "trial": trial.id,
        "job": trial.job_id,
        "try": trial.try_number,
        "task": trial.task.name,
        "agent": trial.agent,
        "model": trial.model,
    }
