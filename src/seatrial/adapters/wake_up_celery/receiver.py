"""A Celery worker in a thread of its own. It takes hints and answers Celery's tools; trials run in the event loop.

All methods may be called from any thread: what touches the broker is handed to Celery's own loop.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery
from celery.bootsteps import CLOSE, TERMINATE
from celery.concurrency.base import BasePool
from celery.exceptions import WorkerShutdown
from celery.worker import state
from celery.worker.consumer import Consumer
from celery.worker.request import Request
from kombu import Connection

from seatrial.adapters.wake_up_celery.app import TRIAL

log = logging.getLogger(__name__)

_STOP_SEC = 5.0
_RETRY_SEC = 2.0
"""Seconds before it connects again."""


class ShownTrial:
    """A running trial, as Celery's tools see a task."""

    def __init__(self, app: Celery, key: str, facts: Mapping[str, Any], since: float, hostname: str) -> None:
        self.id = self.task_id = key
        self.name = TRIAL
        self.task = app.tasks[TRIAL]
        self.facts = dict(facts)
        self.text = repr(self.facts)
        self.hostname = hostname
        self.time_start = since

    def info(self, safe: bool = False) -> dict[str, Any]:
        """What ``inspect active`` prints."""
        return {
            "id": self.id,
            "name": self.name,
            "type": self.name,
            "args": [],
            "kwargs": self.facts,
            "hostname": self.hostname,
            "time_start": self.time_start,
            "acknowledged": True,
            "delivery_info": {},
            "worker_pid": os.getpid(),
        }


class Receiver:
    """One per worker process. ``on_hint`` is called from Celery's thread, with a function that uses the hint up."""

    def __init__(
        self,
        app: Celery,
        hostname: str,
        capacity: Callable[[], int],
        on_hint: Callable[[Callable[[], None]], None],
    ) -> None:
        self._app = app
        self._shown: dict[str, ShownTrial] = {}
        self._controller = app.WorkController(
            hostname=hostname,
            pool_cls=_pool(self._offer, capacity),
            consumer_cls=HintConsumer,
            concurrency=1,  # the number of messages that are fetched before one is acknowledged
            quiet=True,
            without_mingle=True,
            without_gossip=True,
        )
        self.hostname: str = self._controller.hostname
        self._on_hint = on_hint
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops, and leaves hints that were fetched and not used to other workers."""
        self._stopped = True
        for key in list(self._shown):
            state.task_ready(self._shown.pop(key))
        try:
            self._controller.stop()
        except Exception as fault:  # Celery says good-bye to the broker, which may be away
            log.debug("Celery did not stop cleanly: %s", fault)
        self._thread.join(_STOP_SEC)
        if not self.alive:
            self._app.close()

    def show(self, key: str, facts: Mapping[str, Any], since: float) -> None:
        self._shown[key] = shown = ShownTrial(self._app, key, facts, since, self.hostname)
        self._soon(lambda: self._begin(shown))

    def hide(self, key: str) -> None:
        shown = self._shown.pop(key, None)
        if shown is not None:
            self._soon(lambda: self._end(shown))

    def _run(self) -> None:
        try:
            self._controller.start()
        except Exception:
            log.exception("The connection to Celery's broker ended.")

    def _offer(self, request: Request) -> None:
        if not self._stopped:
            self._on_hint(lambda: self._use_up(request))

    def _use_up(self, request: Request) -> None:
        request.acknowledge()
        self._soon(lambda: state.task_ready(request))

    def _begin(self, shown: ShownTrial) -> None:
        if shown.id in self._shown:  # otherwise it ended meanwhile, or the receiver was stopped
            state.task_accepted(shown)
        self._tell("task-received", uuid=shown.id, name=shown.name, args="()", kwargs=shown.text, retries=0)
        self._tell("task-started", uuid=shown.id)

    def _end(self, shown: ShownTrial) -> None:
        state.task_ready(shown, successful=True)
        runtime = max(0.0, time.time() - shown.time_start)
        self._tell("task-succeeded", uuid=shown.id, result="'ended'", runtime=runtime)

    def _tell(self, event: str, **fields: Any) -> None:
        """Events are for people who watch. One that cannot be sent must not end the receiver."""
        dispatcher = getattr(self._controller.consumer, "event_dispatcher", None)
        try:
            if dispatcher is not None and "task" in dispatcher.groups:
                dispatcher.send(event, **fields)
        except Exception as fault:
            log.debug("An event was not sent: %s", fault)

    def _soon(self, action: Callable[[], None]) -> None:
        hub = self._controller.hub
        if hub is not None:
            hub.call_soon(action)


class HintConsumer(Consumer):
    """Celery's own consumer waits up to 30 s before it connects again, and cannot be stopped meanwhile."""

    def ensure_connected(self, conn: Connection) -> Connection:
        connected = conn.ensure_connection(
            self._refused, None, _RETRY_SEC, 0, _RETRY_SEC, callback=self._raise_if_stopped
        )
        self.first_connection_attempt = False
        return connected

    def _refused(self, fault: Exception, _interval: float) -> None:
        log.debug("The broker does not answer: %s", fault)  # the duty that tends the queue reports it

    def _raise_if_stopped(self) -> None:
        if self.blueprint.state in (CLOSE, TERMINATE):
            raise WorkerShutdown


def _pool(offer: Callable[[Request], None], capacity: Callable[[], int]) -> type[BasePool]:
    """Celery wants a class. Its pool runs nothing: it passes the message on."""

    class HintPool(BasePool):
        def on_apply(self, target: Any, args: Any, kwargs: Any, accept_callback: Any, **_: Any) -> None:
            offer(accept_callback.__self__)

        def _get_info(self) -> dict[str, Any]:
            return {"implementation": "seatrial", "max-concurrency": capacity(), "processes": [os.getpid()]}

    return HintPool
