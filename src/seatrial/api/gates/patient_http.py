"""uvicorn's HTTP protocol with one thing added: a connection that never completes the head of a request is cut.

uvicorn waits for that for ever. Bodies are another matter: ``limits`` looks after those. Used by ``serve``.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class PatientHttp(HttpToolsProtocol):
    head_sec: ClassVar[float] = 30.0
    """From the connection, or from the first byte of a further request, to the end of its headers."""
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        """A timer that runs is left to run: sending a byte now and then buys no time."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_sec, self._cut)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cut(self) -> None:
        """Only between requests: what is still being answered is not cut short by the one that was sent after it."""
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def patient_http(head_sec: float) -> type[PatientHttp]:
    """The protocol's class with this patience; uvicorn makes one of it for each connection."""
    return type("PatientHttp", (PatientHttp,), {"head_sec": head_sec})
