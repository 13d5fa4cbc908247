"""Builds httpx requests, and decides how long and how often they are repeated or resumed."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from seatrial.client.ask import PREFIX, Archive, Ask, Following, Sent
from seatrial.client.refusals import unreachable

PAUSES = (0.2, 0.5, 1.0)
"""Seconds before the first, second and third retry of a request; then it fails."""
LONG_SEC = 600.0
"""Timeout while the service checks an upload, or fetches a dataset."""
_FIRST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.1, 2.0
QUIET_SEC = 45.0
"""A stream that is silent for this long is broken: the service sends a comment every 15 s."""


def arguments(ask: Ask[Any], opened: ExitStack) -> dict[str, Any]:
    """Arguments of ``build_request``. Opened files are closed with the stack."""
    found: dict[str, Any] = {
        "method": ask.method,
        "url": PREFIX + ask.path,
        "params": ask.params,
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
        "params": to.params,
        "headers": headers,
        "timeout": timeout,
    }


def pause_before(ask: Ask[Any], error: httpx.TransportError, tries: int) -> float | None:
    """Seconds before the next retry; ``None`` if there is none. A request that was never sent is safe to repeat."""
    never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    if tries > len(PAUSES) or not (never_left or ask.may_repeat):
        return None
    return PAUSES[tries - 1]


def is_gone(ask: Ask[Any], answer: httpx.Response, tries: int) -> bool:
    """A repeated deletion whose first answer was lost gets 404, which counts as success."""
    return ask.method == "DELETE" and tries > 1 and answer.status_code == 404


class Resumption:
    """When a dropped stream reconnects. Gives up when the service has not been reached for ``patience`` seconds."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._reached_at = clock()
        self._pause = _FIRST_PAUSE_SEC

    def reached(self) -> None:
        self._reached_at = self._clock()
        self._pause = _FIRST_PAUSE_SEC

    def refused(self, error: Exception, url: httpx.URL) -> None:
        """Raises once the patience has run out."""
        if self._clock() - self._reached_at < self._patience:
            return
        if isinstance(error, httpx.TransportError):
            raise unreachable(url, error) from error
        raise error

    def pause(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE_SEC)
        return pause


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


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
