"""Network namespaces held by an open file: no name, no mount, and gone when the process that holds them is.

``router`` makes and enters them, always in a thread of its own: a thread that cannot return to where it came from must
not be used again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_CURRENT = "/proc/thread-self/ns/net"
_SYSCTL = Path("/proc/sys/net")


class Namespace:
    """One network namespace, alive for as long as it is open here or a process is in it."""

    def __init__(self, file: int) -> None:
        self.file = file

    @classmethod
    def current(cls) -> Namespace:
        """The one that the calling thread is in."""
        return cls(os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC))

    @property
    def path(self) -> Path:
        """Where other processes find it, in whichever mount namespace they are, while this process lives."""
        return Path(f"/proc/{os.getpid()}/fd/{self.file}")

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """Makes a namespace and has the calling thread in it for the block. The caller closes it if the block succeeds."""
    home = Namespace.current()
    try:
        os.unshare(os.CLONE_NEWNET)
        try:
            made = Namespace.current()
            try:
                yield made
            except BaseException:
                made.close()
                raise
        finally:
            os.setns(home.file, os.CLONE_NEWNET)
    finally:
        home.close()


@contextmanager
def entered(namespace: Namespace) -> Iterator[None]:
    """Has the calling thread, and the processes it starts, in that namespace for the block."""
    home = Namespace.current()
    try:
        os.setns(namespace.file, os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home.file, os.CLONE_NEWNET)
    finally:
        home.close()


def set_values(values: Mapping[str, str]) -> None:
    """Writes network settings of the calling thread's namespace. One that this kernel does not have is left out."""
    for name, value in values.items():
        setting = _SYSCTL / name
        if setting.exists():
            setting.write_text(value)


def get_value(name: str) -> str:
    """A network setting of the calling thread's namespace; empty if this kernel does not have it."""
    setting = _SYSCTL / name
    return setting.read_text().strip() if setting.exists() else ""
