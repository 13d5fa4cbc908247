"""Refuses an upload with 507 before reading it if the disk has no room for it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from seatrial.api.answers import error_response, problem_of_status
from seatrial.disk import Disk
from seatrial.errors import StorageFull

_SMALL_TYPES = ("application/json", "application/x-www-form-urlencoded", "text/")
"""Bodies that are parsed in memory and create no file."""


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
    """The declared size of the upload; ``None`` if the request brings no file."""
    kind = headers.get("content-type", "").lower()
    if not kind or kind.startswith(_SMALL_TYPES):
        return None
    length = headers.get("content-length", "")
    return int(length) if length.isdigit() else 0
