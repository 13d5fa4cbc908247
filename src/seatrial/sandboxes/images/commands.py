"""Runs the tools that images are made with: output streamed as it comes, everything they started ended with them."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import shutil
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.sandboxes.images.image import LogSink

_CHUNK = 1 << 16
_TAIL = 16_000
_GRACE_SEC = 5.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a tool ended, with the last part of what it said (all of it reached the log)."""

    status: int
    tail: str
    timed_out: bool = False
    silent: bool = False
    """It was given up because it did not say what it was expected to say in time."""

    @property
    def ok(self) -> bool:
        return self.status == 0


@dataclass(frozen=True, slots=True)
class Patience:
    """Gives a tool up unless one of these texts has appeared after so many seconds."""

    seconds: float
    texts: tuple[str, ...]


class _Tail:
    """The last characters of a stream, at a fixed price."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        self._pieces.append(text[-_TAIL:])
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) >= _TAIL:
            self._size -= len(self._pieces.popleft())

    def __str__(self) -> str:
        return "".join(self._pieces)[-_TAIL:]


async def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    log: LogSink,
    *,
    timeout_sec: float | None = None,
    patience: Patience | None = None,
    cwd: Path | None = None,
) -> Finished:
    """Waits for the tool. Past its time, or when cancelled, its whole process group is killed before this returns."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    tail = _Tail()
    reader = asyncio.ensure_future(_read(process, log, tail))
    watcher = asyncio.ensure_future(_watch(tail, patience)) if patience else None
    try:
        waiting = {reader, watcher} if watcher else {reader}
        done, _ = await asyncio.wait(waiting, timeout=timeout_sec, return_when=asyncio.FIRST_COMPLETED)
        if watcher is not None and watcher in done and not watcher.result():
            done, _ = await asyncio.wait({reader}, timeout=timeout_sec)
        silent = watcher is not None and watcher in done and reader not in done
        timed_out = not done
        if reader in done:
            reader.result()
            await process.wait()
        return Finished(process.returncode if reader in done else -9, str(tail), timed_out, silent)  # type: ignore[arg-type]
    finally:
        await _end(process)
        # Whatever the tool started holds the same pipe: its end says that all of them are gone.
        await asyncio.wait({reader}, timeout=_GRACE_SEC)
        for task in (reader, watcher):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (reader, watcher) if task), return_exceptions=True)


async def _read(process: asyncio.subprocess.Process, log: LogSink, tail: _Tail) -> None:
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := await process.stdout.read(_CHUNK):
        text = decoder.decode(chunk)
        tail.add(text)
        log(text)


async def _watch(tail: _Tail, patience: Patience) -> bool:
    """True once patience ran out; False as soon as the tool said what was waited for."""
    loop = asyncio.get_running_loop()
    end = loop.time() + patience.seconds
    while loop.time() < end:
        said = str(tail)
        if any(text in said for text in patience.texts):
            return False
        await asyncio.sleep(0.05)
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        await asyncio.shield(asyncio.ensure_future(process.wait()))


def require(tool: str, env: Mapping[str, str]) -> None:
    """Tells a missing tool by name and with the command that brings it, before anything is started."""
    if shutil.which(tool, path=env.get("PATH")) is None:
        raise SetupProblem(f"{tool} is not installed.", fix=f"apt-get install {tool}")
