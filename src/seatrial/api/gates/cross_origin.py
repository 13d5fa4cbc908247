"""Lets pages of listed origins read every answer, including refusals of other gates.

This is the outermost layer. The guard decides whether such a page may send the request at all.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.api.gates.access import access_mode
from seatrial.api.gates.origins import Origins
from seatrial.settings import Settings


class CrossOrigin:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._origins = Origins(settings, access_mode(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        granted = self._origins.grant(Headers(scope=scope)) if scope["type"] == "http" else {}
        await self._app(scope, receive, _adding(send, granted) if granted else send)


def _adding(send: Send, extra: dict[str, str]) -> Send:
    async def send_with_extra(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in extra.items():
                if name == "Vary":
                    headers.add_vary_header(value)
                else:
                    headers[name] = value
        await send(message)

    return send_with_extra
