"""Serves untrusted files so that no browser runs them.

Harmless types are sent as such, all others as attachments; without sniffing, in a sandboxed origin. Ranges are
supported.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import Response, StreamingResponse

_SHOWN = {
    "text/plain": "text/plain; charset=utf-8",
    "text/markdown": "text/plain; charset=utf-8",
    "application/toml": "text/plain; charset=utf-8",
    "application/json": "application/json",
    "application/x-ndjson": "text/plain; charset=utf-8",
    "application/x-asciicast": "application/x-asciicast",
    "image/png": "image/png",
}
"""Types that are harmless in a browser, and the content type they are sent with."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

Reader = Callable[[int, int], AsyncIterator[bytes]]
"""Reads a range: start offset and number of bytes."""


async def _range_header(request: Request) -> str | None:
    return request.headers.get("range")


RangeHeader = Annotated[str | None, Depends(_range_header)]


def safe_headers(name: str, *, attach: bool) -> dict[str, str]:
    kind = "attachment" if attach else "inline"
    return {
        "Content-Disposition": f"{kind}; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-cache",
    }


def download(path: str, size: int, media_type: str, read: Reader, wanted: str | None) -> Response:
    """``wanted`` is the Range header. A single range is supported; several or invalid ones give the whole file."""
    shown = _SHOWN.get(media_type)
    headers = safe_headers(path.rsplit("/", 1)[-1], attach=shown is None) | {"Accept-Ranges": "bytes"}
    kind = shown or "application/octet-stream"
    found = _range(wanted, size)
    if found is None:
        return StreamingResponse(read(0, size), 200, headers | {"Content-Length": str(size)}, kind)
    start, end = found
    if start >= end:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{size}"}, media_type=kind)
    part = {"Content-Range": f"bytes {start}-{end - 1}/{size}", "Content-Length": str(end - start)}
    return StreamingResponse(read(start, end - start), 206, headers | part, kind)


def _range(wanted: str | None, size: int) -> tuple[int, int] | None:
    """Start and end (exclusive); empty if outside of the file."""
    match = _RANGE.fullmatch((wanted or "").strip())
    if match is None or match.group(1) == match.group(2) == "":
        return None
    first, last = match.groups()
    if not first:  # the last n bytes
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(size, int(last) + 1) if last else size
