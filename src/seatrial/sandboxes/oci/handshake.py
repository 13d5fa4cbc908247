"""The pipes of a sandbox's first process, by which its parts wait for each other and ``pod`` waits for them.

Nobody looks again and again whether the other is there: hundreds of sandboxes may start at once, and whoever spins
takes the time that the one it waits for needs.
"""

from __future__ import annotations

import os
import select
import time
from typing import Self

READY = "ready"
"""What the first process says on its standard error before it closes it."""


class Handshake:
    """``given`` goes to the first process as its standard files: what it writes to the second, it can read from the
    first; what it writes to the third is read here."""

    def __init__(self) -> None:
        self._mine, report = os.pipe2(os.O_CLOEXEC)
        self.given = (*os.pipe2(os.O_CLOEXEC), report)
        self._open = [*self.given]

    def let_go(self) -> None:
        """Once the process has its files: from here on their end is its end."""
        while self._open:
            os.close(self._open.pop())

    def was_ready(self, patience: float) -> bool:
        """Waits until the first process has said that it is ready, or cannot any more. Blocking."""
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
