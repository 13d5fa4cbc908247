"""A Unix socket of a sandbox, to which this process connects without looking at a path again.

``transfer`` finds it, by the rules of ``in_root``. From then on it is the same socket, whatever becomes of its path.
"""

from __future__ import annotations

import os
import socket

from seatrial.sandboxes.host.in_root import own_path

_CLOSED = -1


class SocketHandle:
    """From ``__init__`` to ``close``."""

    def __init__(self, handle: int) -> None:
        """Duplicates an ``O_PATH`` descriptor."""
        self._handle = os.dup(handle)

    def connected(self) -> socket.socket:
        """A new connection, which does not block. Raises ``OSError``; ``ECONNREFUSED`` if nobody listens any more."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            connection.connect(own_path(self._handle))
        except OSError:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Safe to call again. A closed number may soon be another file, so it is forgotten."""
        handle, self._handle = self._handle, _CLOSED
        if handle != _CLOSED:
            os.close(handle)
