"""What ``seatrial up`` runs: the API and the workers in separate processes, until a signal.

This process only starts the others and forwards signals: it keeps its privileges and parses no input. The API process
answers everybody and drops its privileges, see ``system.privileges``. The first signal drains: nothing new is accepted,
running requests and trials end normally. The second requeues the trials, the third ends everything at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from seatrial.api.app import create_app
from seatrial.api.serve import ApiServer
from seatrial.api_account import prepare, reads_home, shared_places
from seatrial.redact import Redactor
from seatrial.settings import Settings
from seatrial.system.privileges import confine_api
from seatrial.system.processes import die_with
from seatrial.worker_exits import ExitNotes
from seatrial.worker_supervisor import WorkerSupervisor, worker_command

log = logging.getLogger(__name__)

_REQUESTS_PATIENCE_SEC = 5.0
"""Seconds for running requests after the workers have stopped."""
_ANSWERING = b"a"


class _Command(Enum):
    """Commands to the API process, one byte each. The pipe closes when the supervisor is gone."""

    CLOSE_DOORS = b"c"
    FINISH = b"f"
    STOP = b"s"


class _StopRequests:
    """How often we were asked to stop."""

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


def run_service(
    settings: Settings,
    redactor: Redactor,
    listener: socket.socket,
    workers: int,
    concurrency: int,
    started: Callable[[], None],
) -> None:
    """Runs until it was asked to stop and has drained. ``started`` is called in the API process once the API
    answers.

    Forks, because everything is already loaded. Returns in both processes.
    """
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _become_api(settings, supervisor)
        asyncio.run(_serve(settings, redactor, listener, theirs, started))
        return
    theirs.close()
    listener.close()
    status = asyncio.run(_supervise(_ApiProcess(pid, ours), settings, workers, concurrency))
    if status:
        raise SystemExit(status)


def _become_api(settings: Settings, supervisor: int) -> None:
    """Ignores signals: a terminal or service manager sends them to all processes, and the supervisor handles them."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    settings.home.mkdir(parents=True, exist_ok=True)
    account = prepare(settings)
    keep = _kept_by_root(settings) if account is None else set[str]()
    dropped = confine_api(keep, _writable(settings, settings.tasks_dir if keep else None), account)
    for what in dropped.kept:
        log.warning("The API process keeps %s.", what)
    if account is not None:
        reads_home(settings)
    if not die_with(supervisor):
        raise SystemExit(1)


def _kept_by_root(settings: Settings) -> set[str]:
    """Root acts for the owner of its home, which takes capabilities."""
    foreign = os.geteuid() == 0 and settings.home.stat().st_uid != 0
    return {"chown", "dac_override", "dac_read_search", "fowner", "setgid", "setuid"} if foreign else set()


def _writable(settings: Settings, tasks: Path | None = None) -> list[Path]:
    """The database and the files, wherever they are on this machine, and folders for temporary files."""
    places = [settings.home, Path(tempfile.gettempdir()), Path("/var/tmp"), *shared_places(settings)]  # noqa: S108
    if tasks is not None:
        tasks.mkdir(parents=True, exist_ok=True)
        places.append(tasks)
    return [place for place in places if place.is_dir()]


async def _serve(
    settings: Settings, redactor: Redactor, listener: socket.socket, control: socket.socket, started: Callable[[], None]
) -> None:
    control.setblocking(False)
    app = create_app(settings, redactor)
    async with ApiServer(app, listener, settings.keep_alive_sec, settings.slow_client_sec) as server:
        started()
        control.send(_ANSWERING)
        following = asyncio.create_task(_follow_commands(server, control))
        serving = asyncio.create_task(server.stopped())
        await asyncio.wait({following, serving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # raises what ended it; after closing it may have ended by itself
        await following
        await serving


async def _follow_commands(server: ApiServer, control: socket.socket) -> None:
    """Follows commands until the server has finished."""
    loop = asyncio.get_running_loop()
    while (told := await loop.sock_recv(control, 1)) == _Command.CLOSE_DOORS.value:
        server.close_doors()
    await server.finish(_REQUESTS_PATIENCE_SEC if told == _Command.FINISH.value else 0)


class _ApiProcess:
    """The API process, as its supervisor sees it."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self._pid = pid
        self._control = control
        self._control.setblocking(False)

    async def answers(self) -> bool:
        """Waits until the API answers; ``False`` if it exited before, having reported why."""
        return await asyncio.get_running_loop().sock_recv(self._control, 1) == _ANSWERING

    def tell(self, told: _Command) -> None:
        with contextlib.suppress(OSError):  # it has exited
            self._control.send(told.value)

    async def gone(self) -> int:
        """Its exit status, once it has exited."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        watched = os.pidfd_open(self._pid)
        loop.add_reader(watched, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(watched)
            os.close(watched)
        _, status = os.waitpid(self._pid, 0)  # noqa: ASYNC222 - it has exited
        return abs(os.waitstatus_to_exitcode(status))


async def _supervise(api: _ApiProcess, settings: Settings, workers: int, concurrency: int) -> int:
    with _signals() as stop_requests:
        gone = asyncio.create_task(api.gone())
        if not await api.answers():
            return await gone or 1
        notes = ExitNotes.beside(settings.work_dir)
        async with WorkerSupervisor(worker_command(concurrency), workers, notes=notes) as supervisor:
            await _first_of(stop_requests.next(), asyncio.shield(gone))
            if gone.done():
                log.error("The API process exited unexpectedly.")
                return gone.result() or 1
            api.tell(_Command.CLOSE_DOORS)
            await _drain(supervisor, stop_requests)
        api.tell(_Command.FINISH if stop_requests.count == 1 else _Command.STOP)
        status = await gone
    log.info("Stopped.")
    return status


async def _drain(supervisor: WorkerSupervisor, stop_requests: _StopRequests) -> None:
    log.info("Draining: running trials end first. A second signal requeues them.")
    supervisor.leave()
    gone = asyncio.create_task(supervisor.gone())
    while not gone.done() and stop_requests.count < 3:
        await _first_of(asyncio.shield(gone), stop_requests.next())
        if stop_requests.count == 2 and not gone.done():
            log.info("Running trials go back to the queue.")
            supervisor.leave()
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
def _signals() -> Iterator[_StopRequests]:
    stop_requests, loop = _StopRequests(), asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop_requests.add)
    try:
        yield stop_requests
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
