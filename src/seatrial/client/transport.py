"""Code that both drivers share: build httpx requests, decide about retries, run plans."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from seatrial.client.ask import PREFIX, Archive, Ask, Following, Parameters, Plan, Sent, Step
from seatrial.client.messages import MessageReader
from seatrial.errors import SeatrialError

PAUSES = (0.2, 0.5, 1.0)
"""Seconds before the second, third and fourth try of a request; then it fails."""
LONG_SEC = 600.0
"""Timeout while the service checks an upload, or fetches a dataset."""
QUIET_SEC = 45.0
"""A stream that is silent for this long is broken: the service sends a comment every 15 s."""


def arguments(ask: Ask[Any], opened: ExitStack) -> dict[str, Any]:
    """Arguments of ``build_request``. Opened files are closed with the stack."""
    found: dict[str, Any] = {
        "method": ask.method,
        "url": PREFIX + ask.path,
        "params": query(ask.params),
        "headers": list(ask.headers),
    }
    if ask.body is not None:
        found["content"] = ask.body.model_dump_json(by_alias=True)
        found["headers"].append(("Content-Type", "application/json"))
    if ask.archive is not None:
        file = opened.enter_context(_CountedFile(ask.archive))
        found["files"] = [("files", (ask.archive.filename, file, "application/octet-stream"))]
    if ask.archive is not None or ask.is_long:
        found["timeout"] = httpx.Timeout(LONG_SEC, connect=10.0)
    return found


def stream_arguments(to: Following, last_id: str, read_sec: float) -> dict[str, Any]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    timeout = httpx.Timeout(10.0, read=read_sec)
    return {
        "method": "GET",
        "url": PREFIX + to.path,
        "params": query(to.params),
        "headers": headers,
        "timeout": timeout,
    }


def query(params: Parameters) -> list[tuple[str, str]]:
    return [(name, text) for name, value in params.items() for text in _texts(value)]


def pause_before(ask: Ask[Any], error: httpx.TransportError, tries: int) -> float | None:
    """Seconds before the next try; ``None`` if there is none. A request that was never sent is safe to repeat."""
    never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    if tries > len(PAUSES) or not (never_left or ask.may_repeat):
        return None
    return PAUSES[tries - 1]


def is_gone(ask: Ask[Any], answer: httpx.Response, tries: int) -> bool:
    """A repeated deletion whose first answer was lost gets 404, which counts as success."""
    return ask.method == "DELETE" and tries > 1 and answer.status_code == 404


class Walk[Answer]:
    """Runs a plan: returns its steps, passes their results to it, and holds its final answer."""

    def __init__(self, plan: Plan[Answer]) -> None:
        self._plan = plan
        self._result: Any = None
        self._fault: SeatrialError | None = None
        self._answer: tuple[Answer] | None = None

    def step(self) -> Step | None:
        """``None`` once there is an answer."""
        result, fault = self._result, self._fault
        self._result = self._fault = None
        try:
            return self._plan.send(result) if fault is None else self._plan.throw(fault)
        except StopIteration as done:
            self._answer = (done.value,)
            return None

    def give(self, result: Any) -> None:
        self._result = result

    def fail(self, fault: SeatrialError) -> None:
        """Lets the plan handle a failed step."""
        self._fault = fault

    @property
    def answer(self) -> Answer:
        assert self._answer is not None, "the plan has not finished"
        return self._answer[0]

    def close(self) -> None:
        self._plan.close()


class Attention:
    """Limits how long a stream is read while waiting for ``end``. The caller then asks again for the remaining time."""

    def __init__(self, seconds: float | None) -> None:
        self.read_sec = QUIET_SEC if seconds is None else min(seconds, QUIET_SEC)
        """Timeout for one piece."""
        self._until = None if seconds is None else time.monotonic() + seconds + 1
        self._reader = MessageReader()

    def hears(self, piece: bytes) -> bool:
        """Whether time is left to wait for the next piece."""
        for _ in self._reader.feed(piece):
            pass
        late = self._until is not None and time.monotonic() + self.read_sec > self._until
        return not (self.ended or late)

    @property
    def ended(self) -> bool:
        return self._reader.ended


def partial(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _texts(value: str | int | bool | Sequence[str] | None) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, int):
        yield str(value)
    elif value is not None:
        yield from value


class _CountedFile(io.FileIO):
    """Reports how much of the file has been read."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.path)
        self._archive = archive
        self._size = archive.path.stat().st_size
        self._sent = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(-1 if size is None else size) or b""
        self._sent += len(piece)
        if self._archive.progress is not None and piece:
            self._archive.progress(Sent(self._archive.filename, self._sent, self._size))
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        self._sent = super().seek(offset, whence)
        return self._sent
