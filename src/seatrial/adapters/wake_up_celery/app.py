"""The Celery app: the same for senders of hints, for receivers, and for Celery's tools."""

from __future__ import annotations

from typing import Any

from celery import Celery, Task
from kombu import Connection, Queue

from seatrial.adapters.wake_up_celery.address import checked

QUEUE = "seatrial"
"""Also the key of the list in Redis."""
HINT = "seatrial.hint"
TRIAL = "seatrial.trial"
_CONNECT_SEC = 5
_ANSWER_SEC = 30


class SeatrialCelery(Celery):
    """Celery lets ``CELERY_BROKER_URL`` and ``CELERY_RESULT_BACKEND`` in the environment win over what an app says.
    Here the settings decide, and there is no result backend."""

    backend_cls = "disabled"

    def __init__(self, broker_url: str) -> None:
        self._broker_url = checked(broker_url)
        super().__init__("seatrial", broker=self._broker_url, set_as_current=False)

    def connection_for_read(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_read(url or self._broker_url, **options)

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_write(url or self._broker_url, **options)


def celery_app(broker_url: str) -> Celery:
    """JSON only, no results, messages acknowledged early and fetched one at a time."""
    app = SeatrialCelery(broker_url)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_queues=(Queue(QUEUE),),
        task_default_queue=QUEUE,
        task_create_missing_queues=False,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,  # Flower and `celery control enable_events` turn them on while somebody watches
        worker_enable_remote_control=True,
        worker_enable_prefetch_count_reduction=False,
        worker_cancel_long_running_tasks_on_connection_loss=True,  # only tasks acknowledged late, of which none exist
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECT_SEC,
        broker_transport_options={"socket_connect_timeout": _CONNECT_SEC, "socket_timeout": _ANSWER_SEC},
    )
    app.task(name=HINT, send_events=False)(_hint)
    app.task(name=TRIAL)(_hint)
    return app


def hint_of(app: Celery) -> Task:
    task: Task = app.tasks[HINT]
    return task


def _hint(**_: object) -> None:
    """Nothing runs here: a worker takes hints by its own pool, and asks the store."""
