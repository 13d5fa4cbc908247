"""Network namespaces that an open file keeps alive: they have no name and no mount, and end with this process.

``router`` makes and enters them in a separate thread, because a thread that fails to return to its own namespace must
not be used again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_CURRENT = "/proc/thread-self/ns/net"
_SYSCTL = Path("/proc/sys/net")


class Namespace:
    """One network namespace. It exists while this file is open or a process is in it."""

    def __init__(self, file: int) -> None:
        self.file = file

    @classmethod
    def current(cls) -> Namespace:
        """The namespace of the calling thread."""
        return cls(os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC))

    @property
    def path(self) -> Path:
        """A path that works in every mount namespace while this process lives."""
        return Path(f"/proc/{os.getpid()}/fd/{self.file}")

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """Makes a namespace and keeps the calling thread in it for the block. After success the caller closes it."""
    with _elsewhere(lambda: os.unshare(os.CLONE_NEWNET)):
        made = Namespace.current()
        try:
            yield made
        except BaseException:
            made.close()
            raise


@contextmanager
def entered(namespace: Namespace) -> Iterator[None]:
    """Keeps the calling thread, and the processes it starts, in that namespace for the block."""
    with _elsewhere(lambda: os.setns(namespace.file, os.CLONE_NEWNET)):
        yield


@contextmanager
def _elsewhere(leave: Callable[[], None]) -> Iterator[None]:
    home = Namespace.current()
    try:
        leave()
        try:
            yield
        finally:
            os.setns(home.file, os.CLONE_NEWNET)
    finally:
        home.close()


def set_values(values: Mapping[str, str]) -> None:
    """Writes network settings of the calling thread's namespace. Skips those that this kernel does not have."""
    for name, value in values.items():
        setting = _SYSCTL / name
        if setting.exists():
            setting.write_text(value)


def get_value(name: str) -> str:
    """A network setting of the calling thread's namespace; empty if this kernel does not have it."""
    setting = _SYSCTL / name
    return setting.read_text().strip() if setting.exists() else ""
