"""The wake-up of a fleet with Redis."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable

from kombu.exceptions import OperationalError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from seatrial.adapters.wake_up_celery.address import checked, shown
from seatrial.adapters.wake_up_celery.app import QUEUE, celery_app, hint_of
from seatrial.adapters.wake_up_celery.receiver import Receiver
from seatrial.adapters.wake_up_celery.worker_key import WORKER_KEY_SEC, facts_of, worker_document, worker_key
from seatrial.domain.trial import Trial
from seatrial.errors import QueueUnavailable
from seatrial.ports.store import Heartbeat

log = logging.getLogger(__name__)

MOST_HINTS = 100
"""Hints that may wait in Redis. A worker asks for trials as long as it gets some, so one hint wakes it for many."""
_RETRY = {"max_retries": 1, "interval_start": 0.1}
_PATIENCE_SEC = 5.0
_STUCK_SEC = 5.0
"""A receiver that takes no hint for this long, while hints wait, does not work any more."""
_AWAY = (RedisError, OperationalError, OSError, TimeoutError)


class CeleryWakeUp:
    """One per process and event loop. It receives hints from the first ``wait`` on."""

    def __init__(
        self, broker_url: str, worker: str = "", stuck_sec: float = _STUCK_SEC, patience_sec: float = _PATIENCE_SEC
    ) -> None:
        """``worker`` is the name of this process's worker. A broker that does not answer within ``patience_sec`` is
        away."""
        self._broker_url = broker_url
        self._app = celery_app(broker_url)
        self._address = shown(broker_url)
        self._redis: Redis = Redis.from_url(
            checked(broker_url), socket_connect_timeout=patience_sec, socket_timeout=patience_sec
        )
        self._worker = worker
        self._patience_sec = patience_sec
        self._stuck_sec = stuck_sec
        self._capacity = 0
        self._running: dict[str, Trial] = {}
        self._receiver: Receiver | None = None
        self._hints: deque[Callable[[], None]] = deque()
        self._arrived = asyncio.Event()
        self._was_woken = False
        self._silent_since: float | None = None

    async def announce(self, trials: int = 1) -> None:
        """Sends hints until one for each trial waits. Workers that were not woken ask the store a moment later."""
        try:
            async with asyncio.timeout(self._patience_sec):
                wanted = min(trials, MOST_HINTS) - await self._redis.llen(QUEUE)
                if wanted > 0:
                    await asyncio.to_thread(self._send, wanted)
        except _AWAY as fault:
            log.debug("The broker did not take the hint: %s", fault)  # the duty that tends the queue reports it

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
        self._running[_key(trial)] = trial
        if self._receiver is not None:
            self._show(self._receiver, trial)

    def ended(self, trial: Trial) -> None:
        self._running.pop(_key(trial), None)
        if self._receiver is not None:
            self._receiver.hide(_key(trial))

    async def tend(self, about: Heartbeat | None = None) -> None:
        """Asks the broker, writes the worker's key, and replaces a receiver that stands still."""
        try:
            async with asyncio.timeout(self._patience_sec):
                waiting = await self._redis.llen(QUEUE)
                if about is not None:
                    self._capacity = about.capacity
                    document = worker_document(about, self._running.values())
                    await self._redis.set(worker_key(about.worker), document, ex=WORKER_KEY_SEC)
        except _AWAY as fault:
            self._silent_since = None
            why = str(fault) or f"no answer within {self._patience_sec:g} s"
            raise QueueUnavailable(f"The broker {self._address} is away: {why}") from fault
        await self._restart_if_stuck(waiting)

    async def close(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await asyncio.to_thread(receiver.stop)
            with contextlib.suppress(*_AWAY):
                await self._redis.delete(worker_key(self._worker))
        await self._redis.aclose()
        self._app.close()

    def _send(self, hints: int) -> None:
        task = hint_of(self._app)
        with self._app.producer_pool.acquire(block=True) as producer:
            for _ in range(hints):
                task.apply_async(producer=producer, queue=QUEUE, retry=True, retry_policy=_RETRY)

    def _listen(self) -> None:
        if self._receiver is None:
            loop = asyncio.get_running_loop()

            def heard(use_up: Callable[[], None]) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._heard, use_up)

            app = celery_app(self._broker_url)  # a new one: the last receiver may have changed its queues
            receiver = Receiver(app, f"seatrial@{self._worker}", lambda: self._capacity, heard)
            receiver.start()
            for trial in self._running.values():
                self._show(receiver, trial)
            self._receiver = receiver

    def _heard(self, use_up: Callable[[], None]) -> None:
        self._silent_since = None
        self._hints.append(use_up)
        self._arrived.set()

    async def _restart_if_stuck(self, waiting: int) -> None:
        """Known cases: the connection was cut without a sign, and Celery did not consume again after a restart of the
        broker."""
        receiver, now = self._receiver, time.monotonic()
        if receiver is None:
            return
        if receiver.alive and (self._hints or not waiting):
            self._silent_since = None
            return
        self._silent_since = self._silent_since or now
        if receiver.alive and now - self._silent_since < self._stuck_sec:
            return
        log.warning("This worker took no hints from the broker. It connects again.")
        self._receiver = self._silent_since = None
        self._hints.clear()
        await asyncio.to_thread(receiver.stop)
        self._listen()

    def _show(self, receiver: Receiver, trial: Trial) -> None:
        since = trial.started_at.timestamp() if trial.started_at else time.time()
        receiver.show(_key(trial), facts_of(trial), since)


def _key(trial: Trial) -> str:
    return f"trial-{trial.id}.{trial.try_number}"
