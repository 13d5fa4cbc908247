"""What ``seatrial up`` runs: the API in this process, workers in processes of their own, until a signal.

The first signal drains: nothing new is taken in, requests and trials under way end as they would. The second gives the
trials back to the queue, the third ends everything at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seatrial.api.app import create_app
from seatrial.api.serve import ApiServer
from seatrial.redact import Redactor
from seatrial.settings import Settings
from seatrial.worker_supervisor import WorkerSupervisor, worker_command

log = logging.getLogger(__name__)

_REQUESTS_PATIENCE_SEC = 5.0
"""How long requests may still take once the workers are gone."""


class _Wishes:
    """How often somebody asked us to stop."""

    def __init__(self) -> None:
        self.count = 0
        self._more = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._more.set()

    async def next(self) -> int:
        await self._more.wait()
        self._more.clear()
        return self.count


async def run_service(
    settings: Settings,
    redactor: Redactor,
    listener: socket.socket,
    workers: int,
    concurrency: int,
    started: Callable[[], None],
) -> None:
    """Until it was told to stop and has drained. ``started`` is called once the API answers."""
    with _signals() as wishes:
        app = create_app(settings, redactor)
        async with ApiServer(app, listener, settings.keep_alive_sec, settings.slow_client_sec) as server:
            async with WorkerSupervisor(worker_command(concurrency), workers) as crew:
                started()
                await _first_of(wishes.next(), server.stopped())
                server.close_doors()
                await _drain(crew, wishes)
            await server.finish(_REQUESTS_PATIENCE_SEC if wishes.count == 1 else 0)
    log.info("Stopped.")


async def _drain(crew: WorkerSupervisor, wishes: _Wishes) -> None:
    log.info("Draining: trials under way end first. A second signal gives them back.")
    crew.leave()
    gone = asyncio.create_task(crew.gone())
    while not gone.done() and wishes.count < 3:
        await _first_of(asyncio.shield(gone), wishes.next())
        if wishes.count == 2 and not gone.done():
            log.info("Trials under way go back to the queue.")
            crew.leave()
    gone.cancel()


async def _first_of(*waits: object) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]  # type: ignore[call-overload]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


@contextmanager
def _signals() -> Iterator[_Wishes]:
    wishes, loop = _Wishes(), asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, wishes.add)
    try:
        yield wishes
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
