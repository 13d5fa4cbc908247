"""Headers of every answer: security headers, and permission for pages of listed origins to read it.

Added outside of the other gates, so that refusals carry them too. A header that an answer sets itself (the sandbox of a
file, the scripts of the API documentation) is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.api.gates.access import access_mode
from seatrial.api.gates.origins import Origins
from seatrial.settings import Settings

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",  # the terminal player is WebAssembly; scripts stay our own files
        "style-src 'self' 'unsafe-inline'",  # the terminal player adds inline styles
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OF_ALL = tuple((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items())
_OF_API = (*_OF_ALL, (b"cache-control", b"no-store"))


class SecureHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        added = _OF_API if scope["path"].startswith("/api") else _OF_ALL

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = list(message.get("headers", ()))
                own = {name.lower() for name, _ in said}
                message["headers"] = said + [(name, value) for name, value in added if name not in own]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class CrossOrigin:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._origins = Origins(settings, access_mode(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        granted = self._origins.grant(Headers(scope=scope)) if scope["type"] == "http" else {}
        await self._app(scope, receive, adding(send, granted) if granted else send)


def adding(send: Send, extra: Mapping[str, str]) -> Send:
    """Adds headers to the answer."""

    async def send_with_extra(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in extra.items():
                if name == "Vary":
                    headers.add_vary_header(value)
                else:
                    headers.append(name, value)
        await send(message)

    return send_with_extra
