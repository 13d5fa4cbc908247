"""A Celery worker in a thread of its own. It takes hints and answers Celery's tools; trials run in the event loop.

All of its methods may be called from any thread: what touches the broker is handed to Celery's own loop.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery
from celery.concurrency.base import BasePool
from celery.worker import state
from celery.worker.request import Request

from seatrial.adapters.wake_up_celery.app import TRIAL

log = logging.getLogger(__name__)

_STOP_SEC = 5.0


class ShownTrial:
    """A running trial, as Celery's tools see a task."""

    def __init__(self, key: str, facts: Mapping[str, Any], hostname: str) -> None:
        self.id = self.task_id = key
        self.name = TRIAL
        self.facts = dict(facts)
        self.hostname = hostname
        self.time_start = time.time()

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
        self, app: Celery, hostname: str, capacity: int, on_hint: Callable[[Callable[[], None]], None]
    ) -> None:
        self._app = app
        self._hostname = hostname
        self._shown: dict[str, ShownTrial] = {}
        self._controller = app.WorkController(
            hostname=hostname,
            pool_cls=_pool(self._offer, capacity),
            concurrency=1,  # the number of messages that are fetched before one is acknowledged
            quiet=True,
            without_mingle=True,
            without_gossip=True,
        )
        self._on_hint = on_hint
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leaves what was fetched and not used to others."""
        self._controller.stop()
        self._thread.join(_STOP_SEC)

    def show(self, key: str, facts: Mapping[str, Any]) -> None:
        self._shown[key] = shown = ShownTrial(key, facts, self._hostname)
        self._soon(lambda: self._begin(shown))

    def hide(self, key: str, outcome: str) -> None:
        shown = self._shown.pop(key, None)
        if shown is not None:
            self._soon(lambda: self._end(shown, outcome))

    def _run(self) -> None:
        try:
            self._controller.start()
        except Exception:
            log.exception("The connection to Celery's broker ended. Workers go on without hints.")

    def _offer(self, request: Request) -> None:
        self._on_hint(lambda: self._use_up(request))

    def _use_up(self, request: Request) -> None:
        """``acknowledge`` hands the work to Celery's loop by itself; called from that loop, it would wait for the next
        turn, up to a second."""
        request.acknowledge()
        self._soon(lambda: state.task_ready(request))

    def _begin(self, shown: ShownTrial) -> None:
        state.task_accepted(shown)
        self._tell("task-received", uuid=shown.id, name=shown.name, args="()", kwargs=repr(shown.facts), retries=0)
        self._tell("task-started", uuid=shown.id, pid=os.getpid())

    def _end(self, shown: ShownTrial, outcome: str) -> None:
        state.task_ready(shown, successful=True)
        runtime = time.time() - shown.time_start
        self._tell("task-succeeded", uuid=shown.id, result=repr(outcome), runtime=runtime)

    def _tell(self, event: str, **fields: Any) -> None:
        dispatcher = getattr(self._controller.consumer, "event_dispatcher", None)
        if dispatcher is not None:
            dispatcher.send(event, **fields)

    def _soon(self, action: Callable[[], None]) -> None:
        self._controller.hub.call_soon(action)


def _pool(offer: Callable[[Request], None], capacity: int) -> type[BasePool]:
    """Celery wants a class. Its pool runs nothing: it passes the message on."""

    class HintPool(BasePool):  # type: ignore[misc]
        def on_apply(self, target: Any, args: Any, kwargs: Any, accept_callback: Any, **_: Any) -> None:
            offer(accept_callback.__self__)

        def _get_info(self) -> dict[str, Any]:
            return {"implementation": "seatrial", "max-concurrency": capacity, "processes": [os.getpid()]}

    return HintPool
