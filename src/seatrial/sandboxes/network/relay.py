"""One door out of a sandbox: its loopback, at one port, leads to one model's address and nowhere else.

An agent that is installed into a sandbox calls its model from in there, where this machine's loopback, private
addresses, or any network at all may be out of reach, and where a key would be there for the task to read. The relay
listens *inside* the sandbox's network namespace and asks the model *from outside*, with the key, which the sandbox
never sees. No firewall is opened: a socket belongs to the namespace it was made in, so only its making happens there.

``agents.inside`` uses it for the time that an agent runs. The runner uses it on this machine for an agent whose model's
address a caller of the service chose: whatever client the agent has, a redirect to elsewhere ends here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from seatrial.errors import InvalidInput
from seatrial.plain_http import BadRequest, Connections, Request, Response, read_request
from seatrial.sandboxes.network.namespace import Namespace, entered

_NOT_PASSED_ON = frozenset(
    {"connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization", "te", "upgrade"}
)
"""What concerns one connection only."""
_KEYS = frozenset({"api-key", "authorization", "x-api-key", "x-goog-api-key"})
"""A sandbox has no key; what it sends here, it made up."""
_CONNECT_SEC = 30.0
_PIECE = 65536


class ModelRelay:
    """Serves while it is open. ``calls`` counts what was passed on, ``refused`` what was not."""

    def __init__(
        self,
        upstream: str,
        namespace: Path | None,
        headers: Mapping[str, str] | None = None,
        *,
        passes_keys: bool = False,
    ) -> None:
        """``namespace`` is the sandbox's; ``None`` listens on this machine. ``headers`` go with every call.

        With ``passes_keys`` the caller is ours and sends the model's key itself."""
        address = urlsplit(upstream)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InvalidInput(f"{upstream!r} is not the address of a model.", field="api_base")
        self._host = address.hostname
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._port = address.port or (443 if self._tls else 80)
        self._authority = address.netloc.rpartition("@")[2]
        self._base = address.path.rstrip("/")
        self._namespace = namespace
        self._headers = dict(headers or {})
        self._dropped = _NOT_PASSED_ON if passes_keys else _NOT_PASSED_ON | _KEYS
        self._connections = Connections()
        self.calls = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        # A thread that has been elsewhere is not used again.
        with ThreadPoolExecutor(max_workers=1) as threads:
            listener = await asyncio.get_running_loop().run_in_executor(threads, _listen, self._namespace)
        self._server = await asyncio.start_server(self._connected, sock=listener)
        self._listens_at = listener.getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._connections.end()

    @property
    def url(self) -> str:
        """The model's address as the sandbox sees it."""
        return f"http://127.0.0.1:{self._listens_at}{self._base}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._connections.hold(writer):
            try:
                request = await read_request(reader, writer)
                if request is not None:
                    await self._pass_on(request, writer)
            except BadRequest as problem:
                self.refused += 1
                with contextlib.suppress(ConnectionError):
                    await Response(writer).json(problem.status, {"error": {"message": str(problem), "type": "relay"}})
            except (ConnectionError, asyncio.CancelledError):
                pass  # the agent hung up, or its time is over

    async def _pass_on(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """One request for each connection: nothing that follows it can slip through unseen."""
        self._check(request)
        try:
            async with asyncio.timeout(_CONNECT_SEC):
                answer, question = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            raise BadRequest(502, f"The model's address does not answer: {type(error).__name__}.") from error
        self.calls += 1
        try:
            question.write(self._head(request) + request.body)
            await question.drain()
            writer.write(await _status_line(answer))
            while piece := await answer.read(_PIECE):
                writer.write(piece)
                await writer.drain()
        finally:
            question.close()

    def _check(self, request: Request) -> None:
        path = request.path.partition("?")[0]
        inside = path == self._base or path.startswith(f"{self._base}/")
        if request.method not in ("GET", "POST"):
            raise BadRequest(405, "Models are asked by GET and POST.")
        if not inside or "%" in path or "\\" in path or ".." in path.split("/"):
            raise BadRequest(403, f"Only {self._base}/… is open.")

    def _head(self, request: Request) -> bytes:
        kept = {name: value for name, value in request.headers.items() if name not in self._dropped}
        fixed = {"host": self._authority, "connection": "close", "content-length": str(len(request.body))}
        ours = {name.lower(): value for name, value in self._headers.items()}
        lines = [f"{request.method} {request.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**kept, **ours, **fixed}.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _status_line(answer: asyncio.StreamReader) -> bytes:
    """The first line of the answer, unless it sends us elsewhere: the address that was allowed is this one."""
    try:
        line = await answer.readuntil(b"\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BadRequest(502, "The model's address did not answer in HTTP.") from error
    if line.split(b" ", 2)[1:2] and line.split(b" ", 2)[1].startswith(b"3"):
        # Model clients take a 404 for what it is: asking again would not help.
        raise BadRequest(404, "The model's address sends its callers elsewhere; that is not followed.")
    return line


def _listen(namespace: Path | None) -> socket.socket:
    """A listening socket on the loopback of that namespace. Blocking, in a thread of its own."""
    if namespace is None:
        return socket.create_server(("127.0.0.1", 0), backlog=128)
    there = Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC))
    try:
        with entered(there):
            return socket.create_server(("127.0.0.1", 0), backlog=128)
    finally:
        there.close()
