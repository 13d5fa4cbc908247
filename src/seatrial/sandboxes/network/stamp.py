"""Which process made a thing that outlives it, and whether that process is still there.

Written into the names of firewall tables and the labels of interfaces, so that leftovers of a killed process can be
told from what is in use. A process number alone is not enough: numbers come again, and mean something else in another
process namespace.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.processes import start_time

_WORDS = re.compile(r"(\w+)_p(\d+)_s(\d+)_n(\d+)")


class ProcessStamp(Frozen):
    """A process, named so that no other one ever has the same name on this machine while it runs."""

    install: str
    pid: int
    started: int
    """Clock ticks after boot."""
    namespace: int
    """Number of the process namespace that ``pid`` belongs to."""

    @classmethod
    def of_this_process(cls, install: str) -> ProcessStamp:
        return cls(
            install=re.sub(r"[^A-Za-z0-9]", "", install) or "unnamed",
            pid=os.getpid(),
            started=start_time(os.getpid()) or 0,
            namespace=_own_namespace(),
        )

    @classmethod
    def parse(cls, words: str) -> ProcessStamp | None:
        found = _WORDS.fullmatch(words)
        if not found:
            return None
        install, pid, started, namespace = found.groups()
        return cls(install=install, pid=int(pid), started=int(started), namespace=int(namespace))

    def __str__(self) -> str:
        return f"{self.install}_p{self.pid}_s{self.started}_n{self.namespace}"

    @property
    def dead(self) -> bool:
        """Certainly gone. Of a process in another process namespace nothing is certain."""
        return self.namespace == _own_namespace() and start_time(self.pid) != self.started


def _own_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
