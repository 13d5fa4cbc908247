"""The pipes by which the first processes of a sandbox wait for each other, and ``pod`` for them.

Nothing polls: hundreds of sandboxes may start at once, and a busy loop would take the time of what it waits for.
"""

from __future__ import annotations

import os
import select
import time
from typing import Self

READY = "ready"
"""What the first process writes to its standard error before it closes it."""


class Handshake:
    """``given`` become the standard files of the first process. Its input reads what its output wrote; its standard
    error is read here."""

    def __init__(self) -> None:
        self._mine, report = os.pipe2(os.O_CLOEXEC)
        self.given = (*os.pipe2(os.O_CLOEXEC), report)
        self._open = [*self.given]

    def let_go(self) -> None:
        """Closes our copies once the process has its files: from then on they end with it."""
        while self._open:
            os.close(self._open.pop())

    def was_ready(self, patience: float) -> bool:
        """Waits until the first process reports that it is ready, or has ended. Blocking."""
        until = time.monotonic() + patience
        heard = b""
        poll = select.poll()
        poll.register(self._mine, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and poll.poll(left * 1000):
            said = os.read(self._mine, 4096)
            if not said:
                return heard.endswith(f"{READY}\n".encode())
            heard = (heard + said)[-4096:]
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        os.close(self._mine)
