"""Calls providers over HTTP, with connections that are kept open between calls.

It follows no redirect, keeps no cookie and reads no credentials of this machine. Bodies pass in pieces, as fast as the
agent reads them. It knows nothing about formats, budgets and patience.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Self
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from seatrial.gateway.head import Fields

_PIECE = 65536
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that the client would add. The agent's own are passed on instead."""


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    connect_sec: float = 30.0
    idle_sec: float = 900.0
    """Without a byte of an answer. Models may think for long."""


@dataclass(slots=True)
class Question:
    """One request to a provider."""

    url: str
    fields: Fields = field(repr=False)
    """Headers, with the key."""
    body: bytes = field(repr=False)

    def forget(self) -> None:
        """Frees the body, which is not sent again."""
        self.body = b""


class UpstreamFault(Exception):
    """The provider could not be reached, or its answer broke off. ``kind`` says how, without an address.

    ``was_sent``: the whole request was sent before, so the provider may have answered it, and counted it."""

    def __init__(self, kind: str, *, was_sent: bool = False) -> None:
        self.kind = kind
        self.was_sent = was_sent
        super().__init__(f"The model's address does not answer: {kind}.")


class Reply:
    """An answer whose body is not read yet."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.reason = answer.reason or ""
        self.fields: Fields = tuple((name.lower(), value) for name, value in answer.headers.items())

    def header(self, name: str) -> str | None:
        return self._answer.headers.get(name)

    async def pieces(self) -> AsyncGenerator[bytes]:
        with _faults_told(lambda: True):
            async for piece in self._answer.content.iter_any():
                if piece:
                    yield piece


class Upstream:
    """One per gate."""

    def __init__(self, limits: UpstreamLimits | None = None, proxies: Mapping[str, str] | None = None) -> None:
        """``proxies`` by scheme; those of the environment if it is left out."""
        self._limits = limits or UpstreamLimits()
        self._proxies = getproxies() if proxies is None else proxies
        self._proxy_of: dict[tuple[str, str], str | None] = {}
        """By scheme and host. ``proxy_bypass`` reads the whole environment, so it is asked once for each host."""

    async def __aenter__(self) -> Self:
        limits = self._limits
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_OURS,
            read_bufsize=_PIECE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_sec, sock_read=limits.idle_sec),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()

    @asynccontextmanager
    async def ask(self, question: Question) -> AsyncIterator[Reply]:
        """Sends the request and waits for the head of the answer. Raises ``UpstreamFault``.

        Leaving the block before the end of the body closes the connection."""
        answer = await self._answer(question)
        try:
            yield Reply(answer)
        finally:
            answer.release() if answer.content.at_eof() else answer.close()

    async def _answer(self, question: Question) -> aiohttp.ClientResponse:
        """A function of its own: an answer may take minutes, and must not keep its request in memory."""
        body = _Body(question.body)
        with _faults_told(lambda: body.was_sent):
            return await self._session.post(
                URL(question.url, encoded=True),
                data=body,
                headers=question.fields,
                allow_redirects=False,
                proxy=self._proxy_for(question.url),
            )

    def _proxy_for(self, url: str) -> str | None:
        place = urlsplit(url)
        known = (place.scheme, place.netloc)
        if known not in self._proxy_of:
            self._proxy_of[known] = None if _is_near(place) else self._proxies.get(place.scheme)
        return self._proxy_of[known]


class _Body(aiohttp.BytesPayload):
    """The body of one request, which knows whether all of it was sent."""

    was_sent = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await super().write_with_length(writer, content_length)
        self.was_sent = True


@contextmanager
def _faults_told(was_sent: Callable[[], bool]) -> Iterator[None]:
    """Turns the client's errors into ``UpstreamFault``. Their texts may contain addresses."""
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise UpstreamFault(type(error).__name__, was_sent=was_sent()) from error


def _is_near(place: SplitResult) -> bool:
    """Whether this address is called without a proxy."""
    host = place.hostname or ""
    return host == "localhost" or _is_loopback(host) or bool(proxy_bypass(place.netloc))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
