"""What both drivers do in the same way: build httpx's requests, decide about another try, read plans."""

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
"""Before the second try of a request, before the third, and so on; then it is given up."""
LONG_SEC = 600.0
"""How long the service may check what was uploaded, or fetch what it was told to."""
QUIET_SEC = 45.0
"""A stream that says nothing for so long is broken: the service sends a comment every 15 s."""


def arguments(ask: Ask[Any], opened: ExitStack) -> dict[str, Any]:
    """For ``build_request``. Files that are opened for it are closed with the stack."""
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
    """How long to wait before the next try; ``None`` where there is none. What never left is safe to send again."""
    never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    if tries > len(PAUSES) or not (never_left or ask.may_repeat):
        return None
    return PAUSES[tries - 1]


def is_gone(ask: Ask[Any], answer: httpx.Response, tries: int) -> bool:
    """A deletion whose first answer was lost finds nothing the second time, and that is what was wanted."""
    return ask.method == "DELETE" and tries > 1 and answer.status_code == 404


class Walk[Answer]:
    """A plan on its way: hands out its steps, takes what came of each, and has the plan's answer at the end."""

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
        """The plan decides what a failed step means."""
        self._fault = fault

    @property
    def answer(self) -> Answer:
        assert self._answer is not None, "the plan has not come to its end"
        return self._answer[0]

    def close(self) -> None:
        self._plan.close()


class Attention:
    """How long a stream is listened to that only has to say ``end``; whoever waits asks again for what is left."""

    def __init__(self, seconds: float | None) -> None:
        self.read_sec = QUIET_SEC if seconds is None else min(seconds, QUIET_SEC)
        """For one piece."""
        self._until = None if seconds is None else time.monotonic() + seconds + 1
        self._reader = MessageReader()

    def hears(self, piece: bytes) -> bool:
        """Whether there is any point in waiting for the next piece, which may take as long as the whole."""
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
    """Tells how much of it has been read."""

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
