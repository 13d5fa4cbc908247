"""The Celery app: the same for whoever sends hints, receives them, or looks with Celery's tools."""

from __future__ import annotations

from celery import Celery, Task
from kombu import Queue

QUEUE = "seatrial"
HINT = "seatrial.hint"
TRIAL = "seatrial.trial"
_CONNECT_SEC = 5


def celery_app(broker_url: str) -> Celery:
    """JSON only, no results, messages acknowledged early and fetched one at a time."""
    app = Celery("seatrial", broker=broker_url, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_queues=(Queue(QUEUE),),
        task_default_queue=QUEUE,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=True,
        worker_enable_remote_control=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECT_SEC,
        broker_transport_options={"socket_connect_timeout": _CONNECT_SEC, "socket_timeout": 30},
    )
    app.task(name=HINT, send_events=False)(_hint)
    app.task(name=TRIAL)(_hint)
    return app


def hint_of(app: Celery) -> Task:
    task: Task = app.tasks[HINT]
    return task


def _hint(**_: object) -> None:
    """Nothing runs here: a worker takes hints by its own pool, and asks the store."""
