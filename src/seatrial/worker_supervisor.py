"""Keeps worker processes alive: a dead one is replaced, with growing delays, and a note tells how it ended.

Used by ``service`` for ``seatrial up``, and by ``seatrial worker --processes``. Knows processes and signals, and
nothing about trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Self

from seatrial.system.processes import on_signals
from seatrial.worker_exits import ExitNotes, ExitWatch, worker_of

log = logging.getLogger(__name__)

_FIRST_PAUSE_SEC = 0.5
_LONGEST_PAUSE_SEC = 30.0
_STEADY_SEC = 60.0
"""A worker that lived this long is not failing at its start."""


LEFT_BY_ITSELF = 10
"""Exit status of a supervised worker that was idle, or whose machine must go. It is not replaced."""


def worker_command(concurrency: int, *more: str) -> list[str]:
    """A worker that exits when this process does, for whatever reason. 0: as many trials as fit."""
    supervised = ["--supervised-by", str(os.getpid())]
    at_once = ["--concurrency", str(concurrency or "auto")]
    return [sys.executable, "-m", "seatrial", "worker", *at_once, *supervised, *more]


class WorkerSupervisor:
    """An ``async with`` context; the workers run inside it.

    They have their own sessions, so that a terminal's interrupt reaches them only through ``leave``.
    """

    def __init__(
        self,
        command: Sequence[str],
        size: int,
        first_pause_sec: float = _FIRST_PAUSE_SEC,
        notes: ExitNotes | None = None,
    ) -> None:
        self._command = command
        self._size = size
        self._first_pause_sec = first_pause_sec
        self._watch = ExitWatch(notes) if notes is not None else None
        self._running: list[asyncio.Task[None]] = []
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._leaving = asyncio.Event()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def leave(self) -> None:
        """Asks the workers to drain. The second call makes them requeue their trials."""
        self._leaving.set()
        self._send(signal.SIGTERM)

    async def gone(self) -> None:
        """Returns when the last worker has exited, after ``leave``."""
        await asyncio.gather(*self._running)

    async def __aenter__(self) -> Self:
        for number in range(self._size):
            self._running.append(asyncio.create_task(self._keep_running(number), name=f"worker-{number}"))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._leaving.set()
        self._send(signal.SIGKILL)
        await self.gone()

    def _send(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    async def _keep_running(self, number: int) -> None:
        pause = self._first_pause_sec
        loop = asyncio.get_running_loop()
        while not self._leaving.is_set():
            began = loop.time()
            try:
                status = await self._live(number)
                ending = _ending(status)
            except Exception as fault:  # no process or no memory is left, say. The other workers go on
                status, ending = None, f"could not be kept ({fault!r})"
            if self._leaving.is_set() or status == LEFT_BY_ITSELF:
                return
            pause = self._first_pause_sec if loop.time() - began > _STEADY_SEC else pause
            log.warning("A worker %s; another one starts in %g s.", ending, pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._leaving.wait()
            pause = min(2 * pause, _LONGEST_PAUSE_SEC)

    async def _live(self, number: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        self._processes[number] = process
        name = worker_of(process.pid)
        try:
            if self._leaving.is_set():  # ``leave`` was called between the decision and the start
                process.terminate()
            status = await process.wait()
            if self._watch is not None:
                self._watch.note(name, status)
            return status
        finally:
            del self._processes[number]


async def keep_workers(command: Sequence[str], size: int, notes: ExitNotes) -> None:
    """Keeps workers until a signal: the first one drains, the second requeues running trials, the third ends all."""
    asked, enough = 0, asyncio.Event()
    async with WorkerSupervisor(command, size, notes=notes) as supervisor:

        def stop() -> None:
            nonlocal asked
            asked += 1
            supervisor.leave() if asked < 3 else enough.set()

        gone, ended = asyncio.create_task(supervisor.gone()), asyncio.create_task(enough.wait())
        with on_signals(stop):
            await asyncio.wait({gone, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    return f"was ended by {signal.Signals(-status).name}"
