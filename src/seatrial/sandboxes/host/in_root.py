"""A sandbox's files, reached by descriptor from its root: the only way in which this process touches them.

A sandbox controls all of its paths, and may change them between two system calls. So a path is resolved
once, by the kernel, with the sandbox's root for ``/``: neither ``..`` nor a link leads out of it, and the links below
``/proc`` that lead into other views of the sandbox are not followed at all. Everything after that goes by descriptor.
Where this process writes below ``/logs`` and ``/tests``, which it lays out itself, no link of any kind is followed.

A kernel without ``openat2`` (Linux 5.6) is refused: there is no other way to do this safely.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from seatrial.errors import SetupProblem
from seatrial.sandboxes.host.private_mounts import libc
from seatrial.system.openat2 import IN_ROOT, NO_MAGICLINKS, NO_SYMLINKS, has_openat2, openat2

_LOOK = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOGS, _TESTS = "logs", "tests"
_KERNEL_FILES = frozenset({0x9FA0, 0x62656572, 0x27E0EB, 0x63677270, 0x64626720, 0x74726163, 0x1CD1, 0x19800202})
"""proc, sysfs, cgroup, cgroup2, debugfs, tracefs, devpts and mqueue: what they show is no file of the sandbox."""


class SandboxRoot:
    """One view of a sandbox. Paths are absolute, as its processes write them."""

    def __init__(self, descriptor: int) -> None:
        """Borrows an open directory."""
        if not has_openat2():
            raise SetupProblem(
                "This kernel has no openat2, without which no file of a sandbox can be reached safely.",
                fix="Use Linux 5.6 or newer, and let the call through where a seccomp filter keeps it back.",
            )
        self._root = descriptor

    @contextmanager
    def found(self, path: str, *, for_writing: bool = False, follow: bool = True) -> Iterator[int]:
        """A handle to what is at a path, without opening it."""
        with closing(self._open(path, _LOOK | (0 if follow else os.O_NOFOLLOW), for_writing)) as handle:
            yield handle

    @contextmanager
    def directory(self, path: str, *, for_writing: bool = False) -> Iterator[int]:
        with closing(self._open(path, _DIRECTORY, for_writing)) as directory:
            yield directory

    @contextmanager
    def file(self, path: str, *, for_writing: bool = False) -> Iterator[int]:
        """A regular file, opened for reading; ``OSError`` for anything else, which is never opened."""
        with self.found(path, for_writing=for_writing) as handle, reopened(handle) as file:
            yield file

    @contextmanager
    def made_directory(self, path: str, *, follow: bool = True) -> Iterator[int]:
        """A directory for writing, made with those above it where they are missing. Without ``follow`` there is no
        link on the way to it."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        missing: list[str] = []
        while True:
            try:
                directory = self._open("/".join(parts), _DIRECTORY, for_writing=True, plain=not follow)
                break
            except FileNotFoundError:
                if not parts or parts[-1] == "..":
                    raise
                missing.append(parts.pop())
        try:
            while missing:
                below = _made(directory, missing.pop())
                os.close(directory)
                directory = below
            yield directory
        finally:
            os.close(directory)

    def kind(self, path: str) -> int:
        """What a path leads to, as in ``st_mode``; nothing if it leads nowhere."""
        try:
            with self.found(path) as handle:
                return stat.S_IFMT(os.fstat(handle).st_mode)
        except OSError:
            return 0

    def _open(self, path: str, flags: int, for_writing: bool, *, plain: bool = False) -> int:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        ours = parts[:1] in ([_LOGS], [_TESTS]) and (for_writing or len(parts) <= 2)
        rules = IN_ROOT | NO_MAGICLINKS | (NO_SYMLINKS if ours or plain else 0)
        return openat2(self._root, "/".join(parts) or ".", flags, rules)


def is_kernel_file(handle: int) -> bool:
    """Whether it is on a virtual file system of the kernel."""
    facts = ctypes.create_string_buffer(256)
    if libc().fstatfs(handle, facts) != 0:
        return True
    return ctypes.c_long.from_buffer(facts).value in _KERNEL_FILES


@contextmanager
def reopened(handle: int, *, directory: bool = False) -> Iterator[int]:
    """Opens for reading exactly what was looked at, if it is of the right kind; a swapped name does not matter."""
    mode = os.fstat(handle).st_mode
    if not (stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)) or is_kernel_file(handle):
        raise OSError(errno.EINVAL, "not a directory" if directory else "not a regular file")
    with closing(os.open(own_path(handle), os.O_RDONLY | os.O_CLOEXEC)) as file:
        yield file


def own_path(handle: int) -> str:
    """A path of this process to the file behind a handle."""
    return f"/proc/self/fd/{handle}"


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _made(parent: int, name: str) -> int:
    with suppress(FileExistsError):  # it may exist; anything but a directory cannot be opened as one
        os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
