"""Counts how often something really ran: builds have the host's network, and bash can connect to it."""

from __future__ import annotations

import socket
import socketserver
import threading
from typing import Self

from tests.waiting import LIMIT_SEC


class Counter:
    def __init__(self) -> None:
        self._taken = 0
        self._looks = 0
        counter = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                counter._taken += 1

        self._server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def count(self) -> int:
        """All that came before this look. Connections are taken in order, so whoever came before ours is counted."""
        with socket.create_connection(self.address, timeout=LIMIT_SEC) as last:
            assert last.recv(1) == b""
        self._looks += 1
        return self._taken - self._looks

    @property
    def tick(self) -> str:
        """A command that counts."""
        return f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self._server.server_address[1]}'"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
