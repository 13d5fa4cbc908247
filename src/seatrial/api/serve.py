"""The API server: one listening socket, uvicorn with httptools, and a graceful shutdown.

Used by ``service``, which handles signals; the access log is ours too, so uvicorn does neither.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Self

import uvicorn
from fastapi import FastAPI

from seatrial.api.gates.head_limits import head_limited_http
from seatrial.errors import SetupProblem

_PORTS_TRIED = 100
_BACKLOG = 2048


def listen(host: str, port: int, *, next_port: bool = False) -> socket.socket:
    """A listening socket, or an error that says why not. Port 0 means any free port."""
    last = min(port + _PORTS_TRIED, 65536) if next_port and port else port + 1
    for candidate in range(port, last):
        try:
            return _bind(host, candidate)
        except OSError as fault:
            if fault.errno == errno.EADDRINUSE and candidate + 1 < last:
                continue
            raise _explained(fault, host, candidate, next_port) from fault
    raise AssertionError("unreachable: the last candidate either listens or is explained")


def address_of(listener: socket.socket) -> str:
    """``http://host:port``, as typed into a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - only shown
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _explained(fault: OSError, host: str, port: int, next_port: bool) -> SetupProblem:
    if fault.errno == errno.EADDRINUSE:
        tried = " and those after it are" if next_port else " is"
        fix = "Choose another with --port." if next_port else "Choose another with --port, or add --next-port."
        return SetupProblem(f"Port {port} of {host}{tried} taken by another program.", fix=fix)
    return SetupProblem(f"Cannot listen on {host}, port {port}: {fault.strerror or fault}.")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the caller."""
        yield


class ApiServer:
    """An ``async with`` context; inside it the API answers."""

    def __init__(self, app: FastAPI, listener: socket.socket, keep_alive_sec: int, head_sec: float = 30.0) -> None:
        """``head_sec``: the time that a client has to send a request head."""
        self._app = app
        self._listener = listener
        config = uvicorn.Config(
            app,
            http=head_limited_http(head_sec),
            loop="asyncio",
            ws="none",
            lifespan="off",  # entered here, so that start-up errors keep their own message
            timeout_keep_alive=keep_alive_sec,
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._resources.enter_async_context(self._app.router.lifespan_context(self._app))
        self._serving = asyncio.create_task(self._server.serve([self._listener]), name="api")
        await self._server.answering.wait()
        return self

    async def stopped(self) -> None:
        """Returns when the server stops by itself; raises what stopped it."""
        assert self._serving is not None
        await asyncio.shield(self._serving)

    def close_doors(self) -> None:
        """Accepts no new connections. Running requests continue, except event streams, which never end."""
        self._server.should_exit = True
        self._app.state.service.broadcast.close()

    async def finish(self, patience_sec: float) -> None:
        """Waits for running requests, then cuts the rest."""
        assert self._serving is not None
        self.close_doors()
        _, late = await asyncio.wait((self._serving,), timeout=patience_sec)
        if late:
            for request in list(self._server.server_state.tasks):
                request.cancel()
            _, late = await asyncio.wait((self._serving,), timeout=1)
        if late:
            self._server.force_exit = True
        await self._serving

    async def __aexit__(self, *error: object) -> None:
        try:
            await self.finish(0)
        finally:
            await self._resources.aclose()
