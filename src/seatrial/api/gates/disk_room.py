"""Uploads are refused with 507 before a byte of them is read, where the disk has no room for them."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from seatrial.api.answers import error_response, problem_of_status
from seatrial.disk import Disk
from seatrial.errors import StorageFull

_SMALL_TYPES = ("application/json", "application/x-www-form-urlencoded", "text/")
"""Bodies that are read into memory and leave no file behind."""


class DiskRoomCheck:
    def __init__(self, app: ASGIApp, disk: Disk) -> None:
        self._app = app
        self._disk = disk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (wanted := _upload_bytes(Headers(scope=scope))) is not None:
            try:
                self._disk.require(wanted)
            except StorageFull as full:
                response = error_response(scope["path"], 507, problem_of_status(507, full.message, full.fix))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _upload_bytes(headers: Headers) -> int | None:
    """How much a request says it brings to be kept; ``None`` for one that brings no file."""
    kind = headers.get("content-type", "").lower()
    if not kind or kind.startswith(_SMALL_TYPES):
        return None
    length = headers.get("content-length", "")
    return int(length) if length.isdigit() else 0
