"""One command in a running sandbox: started, read, waited for, and ended with everything it started.

``pod`` makes commands. No thread waits for them: the process is watched through a pidfd, its pipes on the event loop,
so that hundreds of commands can be under way.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.sandboxes.oci.runtime import LOG_FD, PROCESS_FD
from seatrial.sandboxes.output import Listener, Stream

_HIGH = 16
_LAST_WORDS = 0.1
"""Seconds given to output of processes that outlive the command."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    fault: str = ""
    """What the runtime said, if the command never began."""


class Command:
    """A command under way."""

    def __init__(self, pid: int, stdout: int, stderr: int, log: int) -> None:
        self.pid = pid
        self._process = os.pidfd_open(pid)
        self._log = log
        self._pipes = (stdout, stderr)
        self._streams: tuple[Stream, ...] = ()
        self._drains: list[asyncio.Task[None]] = []
        self._status: int | None = None

    def listen(self, stdout: Listener | None, stderr: Listener | None) -> None:
        """Begins to read. On the event loop, once."""
        self._streams = (Stream(self._pipes[0], stdout), Stream(self._pipes[1], stderr))
        self._drains = [asyncio.create_task(stream.drain()) for stream in self._streams]

    async def wait(self) -> Ended:
        """Waits for the command itself; what it left in the background may go on."""
        await self._exit()
        await asyncio.wait(self._drains, timeout=_LAST_WORDS)
        for drain in self._drains:
            if drain.done() and not drain.cancelled() and (error := drain.exception()) is not None:
                raise error
        stdout, stderr = self.forget()
        code = os.waitstatus_to_exitcode(self._status or 0)
        return Ended(code if code >= 0 else 128 - code, stdout, stderr, _logged(self._log))

    def forget(self) -> tuple[str, str]:
        """What was printed so far. From now on output is read and thrown away."""
        stdout, stderr = (stream.settle() for stream in self._streams)
        return stdout, stderr

    @property
    def lingering(self) -> list[asyncio.Task[None]]:
        """Pipes that something in the background still holds."""
        return [drain for drain in self._drains if not drain.done()]

    def close(self) -> None:
        """Gives back what the command itself held. Pipes close when they end."""
        for file in (self._process, self._log):
            os.close(file)

    async def _exit(self) -> None:
        loop = asyncio.get_running_loop()
        if self._status is None and not self._reaped():
            ended = loop.create_future()
            loop.add_reader(self._process, _resolve, ended)
            try:
                await ended
            finally:
                loop.remove_reader(self._process)
            self._reaped()

    def _reaped(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid)

    async def gone(self) -> None:
        """Waits until the runtime's process has ended, after a kill."""
        await self._exit()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def spawn(arguments: Sequence[str], description: bytes) -> Command:
    """Starts a command line that reads ``description`` at ``PROCESS_FD``. Blocking and short; for a thread."""
    files = _Files()
    try:
        process = files.memory(description)
        log = files.memory(b"")
        nothing = files.hold(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        out, out_end = files.pipe()
        err, err_end = files.pipe()
        places = ((nothing, 0), (out_end, 1), (err_end, 2), (process, PROCESS_FD), (log, LOG_FD))
        pid = _start(arguments, places, usual=(signal.SIGPIPE, signal.SIGXFSZ))
        return Command(pid, files.keep(out), files.keep(err), files.keep(log))
    finally:
        files.close()


def run_to_end(arguments: Sequence[str], description: bytes = b"", standard: Sequence[int] = ()) -> str:
    """Runs a command line and returns what it logged, empty if all went well. Blocking.

    Without ``standard``, its three standard files, it has neither input nor output."""
    files = _Files()
    try:
        log = files.memory(b"")
        nothing = files.hold(os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC))
        process = files.memory(description)
        given = [files.hold(os.dup(file)) for file in standard] or [nothing] * 3
        places = (*zip(given, range(3), strict=True), (process, PROCESS_FD), (log, LOG_FD))
        code = os.waitstatus_to_exitcode(os.waitpid(_start(arguments, places), 0)[1])
        said = _logged(log)
        return (said or f"{arguments[0]} ended with {code}") if code else ""
    finally:
        files.close()


def _start(arguments: Sequence[str], places: Sequence[tuple[int, int]], usual: Sequence[signal.Signals] = ()) -> int:
    """With each first descriptor at its second number, no signal blocked, and the ``usual`` ones not ignored."""
    return os.posix_spawn(
        arguments[0],
        list(arguments),
        {"PATH": os.defpath},
        file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for source, target in places],
        setsigmask=(),
        setsigdef=usual,
    )


def _logged(log: int) -> str:
    os.lseek(log, 0, os.SEEK_SET)
    return os.read(log, 1 << 16).decode(errors="replace").strip()


class _Files:
    """Descriptors above those that a child's are put at."""

    def __init__(self) -> None:
        self._held: set[int] = set()

    def hold(self, file: int) -> int:
        if file < _HIGH:
            low, file = file, fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _HIGH)
            os.close(low)
        self._held.add(file)
        return file

    def memory(self, content: bytes) -> int:
        file = self.hold(os.memfd_create("seatrial", os.MFD_CLOEXEC))
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        return file

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        return self.hold(ends[0]), self.hold(ends[1])

    def keep(self, file: int) -> int:
        self._held.discard(file)
        return file

    def close(self) -> None:
        for file in self._held:
            os.close(file)


def kill_tree(runtime_process: int, candidates: Callable[[], set[int]], patience: float = 10.0) -> None:
    """Kills the command that a runtime's process started. Blocking."""
    until = time.monotonic() + patience
    leader = _leader(runtime_process, until)
    if leader is None:
        _signal(runtime_process)
    else:
        kill_family(leader, candidates, until - time.monotonic())


def kill_family(leader: int, candidates: Callable[[], set[int]], patience: float = 10.0) -> None:
    """Kills a command by its first process: its session and all of its descendants. Blocking.

    All are stopped before any is killed: a shell whose child dies goes on with its next line. A process that detached
    itself, with neither session nor parent in common, is a service and stays."""
    until = time.monotonic() + patience
    session = _stat(leader).session
    stopped: set[int] = set()
    quiet = 0
    while quiet < 2 and time.monotonic() < until:
        family = _family(stopped | {leader}, session, candidates())
        for process in family - stopped:
            _signal(process, signal.SIGSTOP)
        quiet = 0 if family - stopped else quiet + 1
        stopped |= family
        time.sleep(0.001)
    for process in stopped:
        _signal(process)


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent: int
    session: int


def _leader(runtime_process: int, until: float) -> int | None:
    """The command itself: the runtime's only child, which it has a few milliseconds after its start."""
    until = min(until, time.monotonic() + 2)
    place = Path(f"/proc/{runtime_process}/task/{runtime_process}/children")
    while time.monotonic() < until and _stat(runtime_process).state not in ("Z", "X", ""):
        try:
            children = place.read_text().split()
        except OSError:
            return None
        if children:
            return int(children[0])
        time.sleep(0.002)
    return None


def _family(known: set[int], session: int, candidates: set[int]) -> set[int]:
    stats = {process: _stat(process) for process in candidates}
    alive = {process: entry for process, entry in stats.items() if entry.state not in ("Z", "X", "")}
    family = {process for process, entry in alive.items() if process in known or entry.session == session}
    while True:
        more = {process for process, entry in alive.items() if entry.parent in (family | known)} - family
        if not more:
            return family
        family |= more


def _stat(process: int) -> _Stat:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _Stat("", 0, -1)
    return _Stat(fields[0], int(fields[1]), int(fields[3]))


def _signal(process: int, kind: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, kind)
