"""Files into and out of a sandbox, without any program of its image.

``SandboxView`` calls its methods. ``in_root`` holds the rules for paths of a sandbox, ``tree_copy`` those for what is
copied; here is what Harbor asks for. On this machine's side no link below the given directory is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Protocol

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.accounts import Account, find_account
from seatrial.sandboxes.host.in_root import SandboxRoot, closing, is_kernel_file, own_path
from seatrial.sandboxes.host.sockets import SocketHandle
from seatrial.sandboxes.host.tree_copy import UPLOAD, Budget, LeftOut, TransferLimits, TreeCopy, copy_file
from seatrial.system.growing_files import FileView, look_into
from seatrial.system.removal import empty_directory

__all__ = ["LeftOut", "Transfer", "TransferLimits"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Roots(Protocol):
    """Opens the root that a process of a sandbox sees: ``PrivateMounts``, for most."""

    def root_of(self, process: int, /) -> int: ...


class Transfer:
    """Copies between this machine and what one process of a sandbox sees. Blocking."""

    def __init__(self, roots: Roots, process: int) -> None:
        """``process`` is a descriptor of a process or of a mount namespace."""
        self._roots = roots
        self._process = process

    def put_file(self, source: Path, target: str) -> None:
        with closing(os.open(source, os.O_RDONLY | os.O_CLOEXEC)) as content, self._root() as root:
            place = PurePosixPath(target)
            if target.endswith("/") or root.kind(target) == stat.S_IFDIR:
                place = place / source.name
            with root.made_directory(str(place.parent)) as parent:
                copy_file(content, parent, _plain(place.name), Budget(UPLOAD), 0o7777)

    def put_tree(self, source: Path, target: str) -> None:
        """Copies the content of a directory over what is there."""
        with (
            closing(os.open(source, _DIRECTORY)) as origin,
            self._root() as root,
            root.made_directory(target) as goal,
        ):
            left = TreeCopy("in", Budget(UPLOAD)).run(origin, goal)
        if left.reasons:
            raise OSError(errno.EINVAL, f"not everything could be put into {target}: {'; '.join(left.lines()[:5])}")

    def get_file(self, source: str, target: Path, limits: TransferLimits) -> None:
        """Raises ``FileNotFoundError``, or ``OSError`` for anything but a regular file and for one too large."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            closing(os.open(target.parent, _DIRECTORY)) as parent,
            self._root() as root,
            root.file(source) as content,
        ):
            copy_file(content, parent, target.name, Budget(limits))

    def get_tree(self, source: str, target: Path, limits: TransferLimits, first: Sequence[str] = ()) -> LeftOut:
        """Copies the content of a directory; returns what was left out. Names in ``first`` are copied first."""
        with self._root() as root, root.directory(source) as origin, host_directory(target) as goal:
            if is_kernel_file(origin):
                raise OSError(errno.EINVAL, f"{source} holds no files of the sandbox")
            return TreeCopy("out", Budget(limits), first).run(origin, goal)

    def make_dirs(self, paths: list[str], mode: int) -> None:
        with self._root() as root:
            for path in paths:
                try:
                    with root.made_directory(path) as directory:
                        os.fchmod(directory, mode)
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                        raise
                    message = f"The image has something else at {path}, where a directory has to be."
                    raise SandboxFault(message) from error

    def empty(self, paths: list[str]) -> None:
        """Removes what is in directories, and not the directories."""
        with self._root() as root:
            for path in paths:
                with root.directory(path, for_writing=True) as directory:
                    if problem := empty_directory(directory):
                        raise SandboxFault(f"{path} could not be emptied: {problem}")

    def make_executable(self, path: str) -> bool:
        """``chmod +x`` as root. Returns whether there is such a file."""
        try:
            with self._root() as root, root.file(path, for_writing=True) as file:
                os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) | 0o111)
        except OSError:
            return False
        return True

    def is_dir(self, path: str) -> bool:
        with self._root() as root:
            return root.kind(path) == stat.S_IFDIR

    def is_file(self, path: str) -> bool:
        with self._root() as root:
            return root.kind(path) == stat.S_IFREG

    def look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> list[FileView]:
        """Reads what is being written in directories, given by the prefix of their files' names."""
        found: list[FileView] = []
        with self._root() as root:
            for prefix, path in folders.items():
                with suppress(OSError), root.directory(path) as directory:
                    found += look_into(directory, prefix, seen, wanted)
        return found

    def socket(self, path: str) -> SocketHandle:
        with self._root() as root, root.found(path, follow=False) as handle:
            return SocketHandle(handle)

    def account(self, wanted: str | int | None) -> Account:
        """A user of the sandbox, see ``find_account``."""
        with self._root() as root:
            return find_account(root, wanted)

    def present(self, paths: Sequence[str]) -> list[str]:
        """Those of the paths that lead to something executable."""
        with self._root() as root:
            return [path for path in paths if _is_executable(root, path)]

    @contextmanager
    def _root(self) -> Iterator[SandboxRoot]:
        with closing(self._roots.root_of(self._process)) as descriptor:
            yield SandboxRoot(descriptor)


@contextmanager
def host_directory(target: Path) -> Iterator[int]:
    """A directory of this machine, made where it is missing. An earlier transfer may have put a link in its place."""
    target.mkdir(parents=True, exist_ok=True)
    with closing(os.open(target, _DIRECTORY | os.O_NOFOLLOW)) as directory:
        yield directory


def _is_executable(root: SandboxRoot, path: str) -> bool:
    try:
        with root.found(path) as handle:
            return os.access(own_path(handle), os.X_OK)
    except OSError:
        return False


def _plain(name: str) -> str:
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, f"{name!r} is no name for a file")
    return name
