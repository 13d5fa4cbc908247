"""A thin client of the Docker Engine API, for dockerd and Podman's service.

It knows HTTP and the engine's errors, and nothing of trials. Each command has its own connection, which the engine
takes over for raw streams, with backpressure: a command blocks while its output is not read.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import aiohttp

from seatrial.errors import SandboxFault
from seatrial.sandboxes.output import OutputStream

USUAL_SOCKET = "unix:///var/run/docker.sock"
_QUICK = aiohttp.ClientTimeout(total=120)
_PATIENT = aiohttp.ClientTimeout(total=None, sock_connect=10)
_REMOVE_SEC = 30.0
_REMOVE_PAUSE_SEC = 0.05
_FRAME = 8
_HEADER_LIMIT = 1 << 16


class EngineRefused(SandboxFault):
    """The engine answered with an error."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"The container engine said: {reason}")


class EngineGone(SandboxFault):
    """The container engine does not answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some output of a command."""

    stream: OutputStream
    data: bytes


class EngineClient:
    """One engine. Open it with ``async with``, or ``close`` it.

    Paths have no API version, so engines use their newest. The calls here are the same in all versions."""

    def __init__(self, host: str = "") -> None:
        self.host = host or USUAL_SOCKET
        self._address = urlsplit(self.host)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def get(self, path: str, **query: Any) -> Any:
        return await self._json("GET", path, query, None)

    async def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return await self._json("POST", path, query, body)

    async def delete(self, path: str, **query: Any) -> None:
        await self._json("DELETE", path, query, None)

    async def remove_container(self, name: str) -> None:
        """Removes a container with its anonymous volumes. Does nothing if it is already gone."""
        until = asyncio.get_running_loop().time() + _REMOVE_SEC
        while True:
            try:
                return await self.delete(f"/containers/{name}", force=True, v=True)
            except EngineRefused as error:
                if error.status in (404, 409):  # 409: it is being removed at this moment
                    return None
                # Podman refuses to remove a container whose namespaces another one uses, even one that is exiting.
                if "has dependent containers" not in error.reason or asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(_REMOVE_PAUSE_SEC)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        data: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A call whose body or answer is long. Raises like the others when the engine refuses it."""
        try:
            async with self._opened().request(
                method,
                self._url(path, query or {}),
                data=data,
                headers={"Content-Type": "application/x-tar", **(headers or {})},
                timeout=_PATIENT,
            ) as response:
                await _check(response)
                yield response
        except (aiohttp.ClientError, OSError) as error:
            raise self._gone(error) from error

    @asynccontextmanager
    async def conversation(self, path: str, body: bytes = b"") -> AsyncIterator[Conversation]:
        """Makes a call whose connection the engine takes over for the standard streams of a process."""
        try:
            reader, writer = await self._dial()
        except OSError as error:
            raise self._gone(error) from error
        try:
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
                f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            try:
                await writer.drain()
                await _read_header(reader)
            except (OSError, EOFError, asyncio.LimitOverrunError) as error:
                raise self._gone(error) from error
            yield Conversation(reader, writer)
        finally:
            writer.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # An unlimited pool: each command in flight is a connection.
            connector: aiohttp.BaseConnector = (
                aiohttp.UnixConnector(self._address.path, limit=0)
                if self._address.scheme == "unix"
                else aiohttp.TCPConnector(limit=0)
            )
            self._session = aiohttp.ClientSession(connector=connector, timeout=_QUICK, trust_env=False)
        return self._session

    def _url(self, path: str, query: Mapping[str, Any]) -> str:
        host = "http://engine"
        if self._address.scheme != "unix":
            secure = self._address.scheme == "https"
            host = f"{'https' if secure else 'http'}://{self._address.hostname}:{self._address.port or 2375}"
        words = [
            (name, _word(word))
            for name, value in query.items()
            for word in (value if isinstance(value, tuple) else (value,))
            if word is not None
        ]
        return f"{host}{path}" + (f"?{urlencode(words)}" if words else "")

    async def _json(self, method: str, path: str, query: Mapping[str, Any], body: Any) -> Any:
        try:
            async with self._opened().request(method, self._url(path, query), json=body) as response:
                await _check(response)
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._gone(error) from error
        return json.loads(text) if text.strip().startswith(("{", "[")) else text

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._address.scheme == "unix":
            return await asyncio.open_unix_connection(self._address.path, limit=_HEADER_LIMIT)
        secure = ssl.create_default_context() if self._address.scheme == "https" else None
        host, port = self._address.hostname or "localhost", self._address.port or 2375
        return await asyncio.open_connection(host, port, ssl=secure, limit=_HEADER_LIMIT)

    def _gone(self, error: BaseException) -> EngineGone:
        return EngineGone(
            f"The container engine at {self.host} does not answer ({str(error) or type(error).__name__}).",
            fix="Start it, or set DOCKER_HOST to where it listens.",
        )


class Conversation:
    """The standard streams of a running command."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, data: bytes) -> None:
        """Writes to the command's standard input; ``done`` ends it."""
        self._writer.write(data)
        await self._writer.drain()

    def done(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()

    async def pieces(self) -> AsyncIterator[Piece]:
        """Its output, until the last process that holds it has closed it."""
        try:
            while True:
                try:
                    header = await self._reader.readexactly(_FRAME)
                except asyncio.IncompleteReadError as error:
                    if error.partial:
                        raise EngineGone("The container engine hung up in the middle of a command's output.") from error
                    return
                left = int.from_bytes(header[4:], "big")
                while left:
                    data = await self._reader.read(min(left, _HEADER_LIMIT))
                    if not data:
                        raise EngineGone("The container engine hung up in the middle of a command's output.")
                    left -= len(data)
                    yield Piece("stderr" if header[0] == 2 else "stdout", data)
        except ConnectionError as error:
            raise EngineGone(f"The line to a command broke ({error}).") from error


async def _read_header(reader: asyncio.StreamReader) -> None:
    """Waits until the engine accepts the raw stream."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace").split("\r\n")
    status = int(lines[0].split()[1])
    if status in (101, 200):
        return
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = await reader.read(int(fields.get("content-length", "4096")))
    raise EngineRefused(status, _reason(body.decode(errors="replace")))


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        raise EngineRefused(response.status, _reason(await response.text()))


def _reason(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip() or "nothing more"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
