"""Logs one line per request, gives it an id, and counts it. Pure ASGI, so streams pass through unbuffered.

The query string is never logged: it may contain secrets.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Protocol, Self

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.logs import noting

log = logging.getLogger("seatrial.access")

_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_QUIET = ("/health", "/ready", "/metrics")
"""Polled by machines every few seconds, so logged at DEBUG unless something is wrong. A 503 is a normal answer here."""
_UNKNOWN = "(none)"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class RequestNumbers(Protocol):
    """Counts requests."""

    def answered(self, method: str, route: str, status: int, seconds: float) -> None: ...

    def listening(self, change: int) -> None:
        """An event stream began (+1) or ended (-1)."""
        ...


class RequestLog:
    def __init__(self, app: ASGIApp, numbers: RequestNumbers) -> None:
        self._app = app
        self._numbers = numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        scope["seatrial.request_id"] = request_id
        with noting(request_id=request_id), _Answer(scope, send, request_id, self._numbers) as answer:
            await self._app(scope, receive, answer.send)


class _Answer:
    """One request, from its arrival to the last byte of the answer."""

    def __init__(self, scope: Scope, send: Send, request_id: str, numbers: RequestNumbers) -> None:
        self._scope = scope
        self._send = send
        self._request_id = request_id
        self._numbers = numbers
        self._status = 0
        self._streams = False
        self._began = time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            self._status = message["status"]
            self._streams = headers.get("content-type", "").startswith("text/event-stream")
            if self._streams:
                self._numbers.listening(+1)
        await self._send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        seconds = time.perf_counter() - self._began
        method = self._scope["method"] if self._scope["method"] in _METHODS else "OTHER"
        route = route_of(self._scope)
        status = self._status or (499 if kind is not None and not issubclass(kind, Exception) else 500)
        if self._streams:
            self._numbers.listening(-1)
        else:
            self._numbers.answered(method, route, status, seconds)
        caller = self._scope.get("seatrial.caller")
        about: dict[str, object] = {"method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 1)}
        if caller is not None:
            about["caller"] = caller.name
        quiet = route in _QUIET and (status < 400 or status == 503)
        log.log(logging.DEBUG if quiet else logging.INFO, "Request", extra={"about": about})


def route_of(scope: Scope) -> str:
    """The template of the matched route, such as ``/api/v1/jobs/{job_id}``: paths would be too many label values."""
    return getattr(scope.get("route"), "path", None) or _UNKNOWN
