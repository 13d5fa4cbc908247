"""Limits on request bodies: 413 too large, 408 too slow, 429 or 503 too many uploads at once, 507 full disk.

Bytes are counted while they stream, so a wrong or missing Content-Length does not help. The limits apply through
``receive``, whichever code reads the body; a handler sees them as an ``HTTPException``. If a body was not read to its
end, the connection is closed after its client had time to read the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.api.answers import error_response, problem_of_status
from seatrial.errors import StorageFull
from seatrial.settings import Settings
from seatrial.system.disk import Disk

JSON_LIMIT = 2 << 20
_UPLOAD_TYPES = ("multipart/", "application/zip", "application/gzip", "application/x-", "application/octet-stream")
_SLOWEST_BYTES_PER_SEC = 1000
_KNOWS_NO_413 = ("/api/tasks",)
"""TBench Runner's upload answers 400 for everything that is wrong with an archive."""
_LINGER_SEC = 3.0
"""Most clients read the answer only after they have sent everything. Closing at once would break the connection."""
_UPLOADS_OF_ONE = 128
_UPLOADS_OF_ALL = 256
_SMALL_TYPES = ("application/json", "application/x-www-form-urlencoded", "text/")
"""Bodies that are parsed in memory and create no file."""


class UploadCount:
    """Uploads in progress, by caller."""

    def __init__(self, of_one: int = _UPLOADS_OF_ONE, of_all: int = _UPLOADS_OF_ALL) -> None:
        self._of_one = of_one
        self._of_all = of_all
        self._by_caller: Counter[str] = Counter()

    def enter(self, caller: str) -> None:
        if self._by_caller.total() >= self._of_all:
            raise HTTPException(503, "Too many uploads at once; try again soon.", {"Retry-After": "5"})
        if self._by_caller[caller] >= self._of_one:
            message = f"You already have {self._of_one} uploads in progress; try again when one has ended."
            raise HTTPException(429, message, {"Retry-After": "5"})
        self._by_caller[caller] += 1

    def leave(self, caller: str) -> None:
        self._by_caller[caller] -= 1
        if self._by_caller[caller] <= 0:
            del self._by_caller[caller]


class Limits:
    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        uploads: UploadCount | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        linger_sec: float = _LINGER_SEC,
    ) -> None:
        self._app = app
        self._upload_limit = settings.upload_limit_mb << 20
        self._patience = settings.slow_client_sec
        self._uploads = uploads or UploadCount()
        self._clock = clock
        self._linger_sec = linger_sec

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else None
        if headers is None or not _has_body(headers):
            await self._app(scope, receive, send)
            return
        is_upload = headers.get("content-type", "").lower().startswith(_UPLOAD_TYPES)
        limit = self._upload_limit if is_upload else JSON_LIMIT
        uploads = self._uploads if is_upload else None
        body = _Body(scope, receive, send, limit, self._patience, uploads, self._clock, self._linger_sec)
        body.waits_to_be_asked = headers.get("expect", "").lower() == "100-continue"
        try:
            if _declared(headers) > limit:
                refusal = _too_large(limit)
                status = 400 if scope["path"] in _KNOWS_NO_413 else refusal.status_code
                problem = problem_of_status(status, refusal.detail)
                await error_response(scope["path"], status, problem)(scope, receive, body.send)
            else:
                await self._app(scope, body.receive, body.send)
        finally:
            body.leave()


@dataclass(eq=False)
class _Body:
    """The body of one request, and what is sent before the body has ended."""

    scope: Scope
    source: Receive
    sink: Send
    limit: int
    patience: float
    uploads: UploadCount | None
    clock: Callable[[], float]
    linger_sec: float
    waits_to_be_asked: bool = False
    _entered: str | None = None
    _size: int = 0
    _waited: float = 0.0
    _ended: bool = False
    _fault: HTTPException | None = None
    _lingers: bool = False

    async def receive(self) -> Message:
        if self._ended:
            return await self.source()
        try:
            return await self._next()
        except HTTPException as fault:
            self._fault = fault
            self.leave()
            raise

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._ended:
            MutableHeaders(scope=message)["Connection"] = "close"
            self._lingers = not self.waits_to_be_asked
        elif message["type"] == "http.response.body" and self._lingers and not message.get("more_body", False):
            self._lingers = False
            await self.sink({**message, "more_body": True})
            await self._let_it_read()
            message = {"type": "http.response.body", "body": b""}
        await self.sink(message)

    def leave(self) -> None:
        if self._entered is not None and self.uploads is not None:
            self.uploads.leave(self._entered)
            self._entered = None

    async def _next(self) -> Message:
        if self._fault is not None:
            raise self._fault
        self._enter()
        began = self.clock()
        try:
            message = await asyncio.wait_for(self.source(), self.patience)
        except TimeoutError:
            raise HTTPException(408, f"No data for {self.patience:g} s in the middle of the request.") from None
        self._waited += self.clock() - began
        self._take(message)
        return message

    def _take(self, message: Message) -> None:
        self._size += len(message.get("body", b""))
        if self._size > self.limit:
            raise _too_large(self.limit)
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._ended = True
            self.leave()
        elif self._waited > self.patience and self._size < self._waited * _SLOWEST_BYTES_PER_SEC:
            raise HTTPException(408, "The request was sent too slowly.")

    def _enter(self) -> None:
        """Runs when the first byte is read: by then the guard has identified the caller."""
        self.waits_to_be_asked = False
        if self.uploads is not None and self._entered is None:
            caller = _name_of_caller(self.scope)
            self.uploads.enter(caller)
            self._entered = caller

    async def _let_it_read(self) -> None:
        """Reads and discards what still arrives, for a limited time."""
        try:
            async with asyncio.timeout(self.linger_sec):
                while (message := await self.source())["type"] != "http.disconnect":
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            pass


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"The request is larger than {limit >> 20} MB.")


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _declared(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _name_of_caller(scope: Scope) -> str:
    caller = scope.get("seatrial.caller")
    if caller is not None and caller.token_id is not None:
        return f"token {caller.token_id}"
    client = scope.get("client")
    return f"address {client[0]}" if client else "local"


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
