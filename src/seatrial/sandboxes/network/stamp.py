"""Which process made a thing that outlives it, and whether that process is still there.

Written into the names of firewall tables and the labels of interfaces, so that leftovers of a killed process can be
told from what is in use. These things are gone after a reboot, so the stamp does not name the boot.
"""

from __future__ import annotations

import re

from seatrial.domain.frozen import Frozen
from seatrial.processes import ProcessIdentity, boot_id

_WORDS = re.compile(r"(\w+)_p(\d+)_s(\d+)_n(\d+)")


class ProcessStamp(Frozen):
    """An installation and a process of this boot."""

    install: str
    process: ProcessIdentity

    @classmethod
    def of_this_process(cls, install: str) -> ProcessStamp:
        return cls(install=re.sub(r"[^A-Za-z0-9]", "", install) or "unnamed", process=ProcessIdentity.mine())

    @classmethod
    def parse(cls, words: str) -> ProcessStamp | None:
        found = _WORDS.fullmatch(words)
        if not found:
            return None
        install, pid, started, namespace = found.groups()
        process = ProcessIdentity(pid=int(pid), started=int(started), namespace=int(namespace), boot=boot_id())
        return cls(install=install, process=process)

    def __str__(self) -> str:
        return f"{self.install}_p{self.process.pid}_s{self.process.started}_n{self.process.namespace}"

    @property
    def dead(self) -> bool:
        """Surely gone. Nothing is certain about a process of another PID namespace."""
        return self.process.is_dead
