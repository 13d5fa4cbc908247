"""What both drivers do in the same way: build httpx's requests, decide about another try, read plans."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from seatrial.client.ask import PREFIX, Archive, Ask, Following, Parameters, Sent

PAUSES = (0.2, 0.5, 1.0)
"""Before the second try of a request, before the third, and so on; then it is given up."""
UPLOAD_SEC = 600.0
"""How long the service may check what was uploaded."""
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
        found["timeout"] = httpx.Timeout(UPLOAD_SEC, connect=10.0)
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
