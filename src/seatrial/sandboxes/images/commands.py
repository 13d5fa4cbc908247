"""Runs the tools that make images. Their output reaches the log as it comes, and no process outlives the call."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from seatrial.errors import SetupProblem
from seatrial.sandboxes.images.image import LogSink

_CHUNK = 1 << 16
_TAIL = 16_000
_GRACE_SEC = 5.0
_NOISE = re.compile(r"copier\.request\{.*\}: ")
"""buildah prints a whole structure in the middle of its message when a copy fails."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a tool ended, with the end of its output."""

    status: int
    tail: str
    timed_out: bool = False
    silent: bool = False
    """The tool was killed because the expected text did not appear in time."""

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def last_line(self) -> str:
        """The last line of output, or the last one with an error in it."""
        lines = [line.strip() for line in _NOISE.sub("", self.tail).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        return (errors or lines or [f"exit status {self.status}"])[-1][:600]


@dataclass(frozen=True, slots=True)
class Patience:
    """Kills a tool unless one of these texts appears within this time."""

    seconds: float
    texts: tuple[str, ...]


def discard(_: str) -> None:
    """A log that drops all output."""


class _Output:
    """Reads a tool's output, passes it to the log and keeps the end of it."""

    def __init__(self, log: LogSink, expected: tuple[str, ...]) -> None:
        self.tail = ""
        self.seen = asyncio.Event()
        """One of the expected texts appeared, or the output ended."""
        self._log = log
        self._expected = expected

    async def read(self, stream: asyncio.StreamReader) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while chunk := await stream.read(_CHUNK):
                text = decoder.decode(chunk)
                self.tail = (self.tail + text)[-_TAIL:]
                self._log(text)
                if any(expected in self.tail for expected in self._expected):
                    self.seen.set()
        finally:
            self.seen.set()


async def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    log: LogSink = discard,
    *,
    timeout_sec: float | None = None,
    patience: Patience | None = None,
) -> Finished:
    """Waits for the tool. After a timeout or a cancellation its process group is killed before this returns."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    output = _Output(log, patience.texts if patience else ())
    reading = asyncio.ensure_future(output.read(process.stdout))
    try:
        if patience is not None and not await _in_time(output.seen.wait(), patience.seconds):
            return Finished(-signal.SIGKILL, output.tail, silent=True)
        if not await _in_time(asyncio.shield(reading), timeout_sec):
            return Finished(-signal.SIGKILL, output.tail, timed_out=True)
        return Finished(await process.wait(), output.tail)
    finally:
        await _end(process)
        # The processes that the tool started have the same pipe. Its end means that all of them have ended.
        await asyncio.wait({reading}, timeout=_GRACE_SEC)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _in_time(waiting: Awaitable[object], seconds: float | None) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return False
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        await asyncio.shield(asyncio.ensure_future(process.wait()))


def require(tool: str, env: Mapping[str, str]) -> None:
    """``SetupProblem`` with the command that installs it if the tool is missing."""
    if shutil.which(tool, path=env.get("PATH")) is None:
        raise SetupProblem(f"{tool} is not installed.", fix=f"apt-get install {tool}")
