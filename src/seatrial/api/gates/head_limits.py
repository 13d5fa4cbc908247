"""uvicorn's HTTP protocol with limits on request heads: time, size, and number of open ones.

uvicorn waits for a head without a limit and buffers all of it. Here a slow head is cut, and a large one is answered
with 431; so are trailers and other bytes that are not body. ``limits`` handles bodies. Used by ``serve``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 << 10
"""Maximum bytes of a request line with its headers, and of everything else that is not body."""
MOST_HEADERS = 100
HEADS_OF_ONE = 2048
"""Maximum connections of one address whose first head is incomplete. Equals the number accepted in one go, so that
many clients may connect at once."""
HEADS_OF_ALL = 4096
BYTES_OF_ALL = 32 << 20
"""Maximum bytes of all incomplete heads together."""
_LINGER_SEC = 2.0
_LINGER_BYTES = 64 << 20
"""After a refusal, further input is read and discarded: if we closed at once, the client would not see the answer."""
_ANSWER = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s"
)
_PROBLEM = (
    b'{"detail":"The head of the request is too large.","error":{"code":"head_too_large",'
    b'"message":"The head of the request is too large.","fix":"At most %d bytes and %d headers are taken."}}'
    % (LARGEST_HEAD, MOST_HEADERS)
)


class HeadCount:
    """Incomplete request heads of all connections of a server."""

    def __init__(self) -> None:
        self.waiting: Counter[str] = Counter()
        self.bytes = 0

    def enter(self, address: str) -> bool:
        """Whether another connection of this address is allowed."""
        if self.waiting[address] >= HEADS_OF_ONE or self.waiting.total() >= HEADS_OF_ALL:
            return False
        self.waiting[address] += 1
        return True

    def leave(self, address: str) -> None:
        self.waiting[address] -= 1
        if self.waiting[address] <= 0:
            del self.waiting[address]


class _TooLarge(Exception):
    """Raised inside the parser, which converts it into its own error."""


class HeadLimitedHttp(HttpToolsProtocol):
    head_sec: ClassVar[float] = 30.0
    """Time from the connection, or from the first byte of a further request, to the end of its headers."""
    heads: ClassVar[HeadCount] = HeadCount()
    _head_timer: asyncio.TimerHandle | None = None
    _counted: str | None = None
    """The address that this connection counts for, until its first head is complete."""
    _in_head = True
    _head_size = 0
    _idle_bytes = 0
    """Bytes received since the last body piece, or the end of a head or message."""
    _too_large = False
    _left_to_discard = _LINGER_BYTES

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = str(self.client[0]) if self.client else ""
        if not self.heads.enter(address):
            transport.abort()
            return
        self._counted = address
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._too_large:
            self._discard(len(data))
            return
        self._count_idle(self._idle_bytes + len(data))
        before = self._idle_bytes
        super().data_received(data)
        late = self._idle_bytes == before > LARGEST_HEAD  # it completed nothing
        if not self._too_large and (late or self.heads.bytes > BYTES_OF_ALL):
            self._refuse()

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size = True, 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value) + 4)
        if not self._in_head:
            return  # a trailer: the headers have already decided everything
        if len(self.headers) >= MOST_HEADERS:
            self._too_large = True
            raise _TooLarge
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_size = False, 0
        self._count_idle(0)
        self._stop_waiting()
        self._stop_counting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._count_idle(0)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._count_idle(0)
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._count_idle(0)
        self._stop_waiting()
        self._stop_counting()
        super().connection_lost(exc)

    def _grow(self, size: int) -> None:
        self._head_size += size
        if self._head_size > LARGEST_HEAD:
            self._too_large = True
            raise _TooLarge

    def _count_idle(self, size: int) -> None:
        self.heads.bytes += size - self._idle_bytes
        self._idle_bytes = size

    def _refuse(self) -> None:
        """Answers, unless another answer is in progress, and closes."""
        self._too_large = True
        self._count_idle(0)
        self._stop_waiting()
        self._stop_counting()
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()
            return
        self.transport.write(_ANSWER % (len(_PROBLEM), _PROBLEM))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(_LINGER_SEC, self.transport.abort)

    def _discard(self, size: int) -> None:
        self._left_to_discard -= size
        if self._left_to_discard < 0:
            self.transport.abort()

    def _await_head(self) -> None:
        """A running timer is not reset: sending single bytes buys no time."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_sec, self._cut)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_counting(self) -> None:
        if self._counted is not None:
            self.heads.leave(self._counted)
            self._counted = None

    def _cut(self) -> None:
        """Only between requests: a request that is being answered is not cut because of the next one."""
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def head_limited_http(head_sec: float) -> type[HeadLimitedHttp]:
    """The protocol class with these limits; uvicorn creates one instance per connection."""
    return type("HeadLimitedHttp", (HeadLimitedHttp,), {"head_sec": head_sec, "heads": HeadCount()})
