"""One command in a running sandbox: requested, started, read, waited for, and ended with everything it started.

``pod`` makes commands. No thread waits for them: the process is watched through a pidfd, its pipes on the event loop,
so that hundreds of commands can be under way.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.sandboxes.oci.runtime import LOG_FD, PROCESS_FD
from seatrial.sandboxes.output import Ended, Listener, Pipe, ready

_HIGH = 16
_LAST_WORDS = 0.1
"""Seconds given to output of processes that outlive the command."""


@dataclass(frozen=True, slots=True)
class Call:
    """A requested command."""

    arguments: Sequence[str]
    environment: dict[str, str]
    cwd: str
    user: str | int | None


class Command:
    """A command under way."""

    def __init__(self, pid: int, stdout: int, stderr: int, log: int) -> None:
        self.pid = pid
        self._process = os.pidfd_open(pid)
        self._log = log
        self._files = (stdout, stderr)
        self._pipes: tuple[Pipe, ...] = ()
        self._drains: list[asyncio.Task[None]] = []
        self._status: int | None = None

    def listen(self, listener: Listener | None = None) -> None:
        """Starts to read the output. On the event loop, once."""
        self._pipes = (Pipe(self._files[0], "stdout", listener), Pipe(self._files[1], "stderr", listener))
        self._drains = [asyncio.create_task(pipe.drain()) for pipe in self._pipes]

    async def wait(self) -> Ended:
        """Waits for the command itself; what it left in the background may go on."""
        await self.gone()
        await asyncio.wait(self._drains, timeout=_LAST_WORDS)
        for drain in self._drains:
            if drain.done() and not drain.cancelled() and (error := drain.exception()) is not None:
                raise error
        stdout, stderr = self.forget()
        code = os.waitstatus_to_exitcode(self._status or 0)
        return Ended(code if code >= 0 else 128 - code, stdout, stderr, _logged(self._log))

    def forget(self) -> tuple[str, str]:
        """What was printed so far. From now on output is read and thrown away."""
        stdout, stderr = (pipe.settle() for pipe in self._pipes)
        return stdout, stderr

    @property
    def lingering(self) -> list[asyncio.Task[None]]:
        """Pipes that something in the background still holds."""
        return [drain for drain in self._drains if not drain.done()]

    def close(self) -> None:
        """Gives back what the command itself held. Pipes close when they end."""
        for file in (self._process, self._log):
            os.close(file)

    async def gone(self) -> None:
        """Waits until the runtime's process has ended."""
        if self._status is None and not self._reaped():
            await ready(self._process)
            self._reaped()

    def _reaped(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid)


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
        return Command(pid, files.release(out), files.release(err), files.release(log))
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

    def release(self, file: int) -> int:
        """The file stays open; the caller closes it."""
        self._held.discard(file)
        return file

    def close(self) -> None:
        for file in self._held:
            os.close(file)
