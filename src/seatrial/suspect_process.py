"""Runs suspected trials in a process of their own, beside the normal work of a worker.

A group of suspects must not share a process with others, because one of them may end it. ``domain/fleet/isolation.py``
has the rules. The worker starts a second process for one group at a time and gives it some of its slots. So the search
needs no idle worker and stops no other trials. The worker sees how that process ends and leaves a note about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from seatrial.domain.fleet.isolation import Suspects
from seatrial.system.processes import WorkerName
from seatrial.worker_exits import ExitWatch, worker_of

log = logging.getLogger(__name__)

_NO_PROGRESS_SEC = 60.0
"""How long a group is left to other workers after a process could claim none of its trials."""

Command = Callable[[Suspects, int, Sequence[str]], Sequence[str]]


def suspects_command(suspects: Suspects, slots: int, sandboxes: Sequence[str]) -> list[str]:
    """A worker for one group that exits when the group is done, or when this process ends."""
    given = ["--concurrency", str(slots), "--suspects", suspects.group, "--supervised-by", str(os.getpid())]
    known = [word for name in sandboxes for word in ("--works-with", name)]
    return [sys.executable, "-m", "seatrial", "worker", *given, *known]


class SuspectProcess:
    """At most one process at a time."""

    def __init__(self, watch: ExitWatch, environment: Mapping[str, str], command: Command = suspects_command) -> None:
        self._watch = watch
        self._environment = environment
        self._command = command
        self.sandboxes: Sequence[str] = ()
        """Those that work on this machine. The process gets them, or it would try all before its first claim."""
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._slots = 0
        self._last: Suspects | None = None
        self._fruitless: dict[str, float] = {}

    @property
    def slots(self) -> int:
        """How many of the worker's slots are taken, or kept free for the next process."""
        return self._slots

    @property
    def runs(self) -> bool:
        return self._waiting is not None and not self._waiting.done()

    async def look(self, groups: Sequence[Suspects], free: int) -> None:
        """Starts a process for one of the groups, if none runs and a slot is free. Takes at most half of what is free,
        so that other trials start, too."""
        if self.runs:
            return
        chosen = self._choose(groups)
        if chosen is None or free < 1:
            self._slots = 1 if chosen is not None else 0
            return
        self._slots = min(chosen.size, max(1, free // 2))
        await self._start(chosen)

    def leave(self) -> None:
        """Asks the process to drain, and at the second call to give its trials back."""
        if self._process is not None and self.runs:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def gone(self) -> None:
        if self._waiting is not None:
            await asyncio.wait({self._waiting})

    def _choose(self, groups: Sequence[Suspects]) -> Suspects | None:
        """Workers choose by their own number, so that they seldom choose the same."""
        now = time.monotonic()
        if self._last is not None and self._last in groups:  # nothing of it was claimed
            self._fruitless[self._last.group] = now + _NO_PROGRESS_SEC
        self._last = None
        self._fruitless = {group: until for group, until in self._fruitless.items() if until > now}
        possible = [one for one in groups if one.group not in self._fruitless]
        return possible[os.getpid() % len(possible)] if possible else None

    async def _start(self, chosen: Suspects) -> None:
        log.info("Suspected trials (group %s, %d of them) run in a process of their own.", chosen.group, chosen.size)
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command(chosen, self._slots, self.sandboxes),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env=dict(self._environment),
            )
        except OSError:
            self._slots = 0
            raise
        name = worker_of(process.pid)  # at once: it has none any more when it has ended
        self._waiting = asyncio.create_task(self._wait(process, name, chosen), name=f"suspects-{chosen.group}")

    async def _wait(self, process: asyncio.subprocess.Process, name: WorkerName | None, chosen: Suspects) -> None:
        status = await process.wait()
        self._slots = 0
        self._last = chosen if status == 0 else None
        if status:
            log.warning("The process of suspected trials (group %s) ended with status %d.", chosen.group, status)
        try:
            self._watch.note(name, status)
        except Exception:
            log.exception("It could not be noted how the process of suspected trials (group %s) ended", chosen.group)
