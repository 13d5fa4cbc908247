"""Counts how often something really ran: builds have the host's network, and bash can connect to it."""

from __future__ import annotations

import socketserver
import threading
from typing import Self


class Counter:
    def __init__(self) -> None:
        self.count = 0
        counter = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                counter.count += 1

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def tick(self) -> str:
        """A command that counts, and ends once it was counted: the kernel connects before anybody looks."""
        return f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self._server.server_address[1]} && ! read -r -u 3'"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
