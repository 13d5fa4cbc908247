"""Packs files of this machine as tar streams, and unpacks those of a sandbox, which may be hostile.

``files`` and ``images`` use it, since an engine accepts nothing else. Threads pack and unpack while the event loop
moves the bytes, so memory use is constant. Unpacking never follows a link, never makes one that leads out of the
target, and never opens a pipe or a device. It reports what it leaves out.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from seatrial.sandboxes.host.in_root import closing
from seatrial.sandboxes.host.transfer import host_directory
from seatrial.sandboxes.host.tree_copy import (
    Budget,
    LeftOut,
    TransferLimits,
    clear,
    fresh_file,
    leads_out,
    made_directory,
    printable,
)
from seatrial.sandboxes.output import ready

_CHUNK = 1 << 18
_TRAILER = 16


class TransferRefused(OSError):
    """A sandbox's files cannot be brought out."""


class NothingMoreWanted(Exception):
    """The rest of the stream is not wanted: the limits are reached, or unpacking failed."""


def packed_tree(source: Path, added: Mapping[str, Path] | None = None) -> AsyncIterator[bytes]:
    """The content of a directory, owned by root, and the files in ``added`` under their names."""
    return _written_by(lambda pipe: _pack_tree(source, pipe, added or {}))


def packed_file(source: Path, name: str) -> AsyncIterator[bytes]:
    return _written_by(lambda pipe: _pack_file(source, name, pipe))


class Unpacking:
    """Unpacks a tar stream piece by piece. The end of its ``async with`` waits for the last file."""

    def __init__(self, read: Callable[[IO[bytes], LeftOut], None]) -> None:
        near, far = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(far, False)
        self.left_out = LeftOut()
        """What was not unpacked, and why."""
        self._file = far
        self._done = _in_a_thread(lambda: _consume(near, lambda pipe: read(pipe, self.left_out)))

    @classmethod
    def tree(cls, target: Path, limits: TransferLimits) -> Unpacking:
        """Into a directory."""
        return cls(lambda pipe, left_out: _unpack_tree(pipe, target, limits, left_out))

    @classmethod
    def file(cls, target: Path, limits: TransferLimits) -> Unpacking:
        """One regular file; its name in the stream is ignored."""
        return cls(lambda pipe, _: _unpack_file(pipe, target, limits))

    async def take(self, data: bytes) -> None:
        """Raises ``NothingMoreWanted`` once nothing more is wanted."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._file, view) :]
            except BlockingIOError:
                await ready(self._file, to_write=True)
            except BrokenPipeError:
                raise NothingMoreWanted from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        os.close(self._file)
        if error is None or isinstance(error, NothingMoreWanted):  # the rest of the archive is not wanted
            await self._done
            return True
        await asyncio.gather(self._done, return_exceptions=True)
        return False


async def _written_by(write: Callable[[IO[bytes]], None]) -> AsyncIterator[bytes]:
    near, far = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(near, False)
    done = _in_a_thread(lambda: _produce(far, write))
    try:
        while True:
            try:
                data = os.read(near, _CHUNK)
            except BlockingIOError:
                await ready(near)
                continue
            if not data:
                break
            yield data
        await done
    finally:
        os.close(near)
        await asyncio.gather(done, return_exceptions=True)


def _in_a_thread[T](work: Callable[[], T]) -> asyncio.Future[T]:
    """Runs in a new thread: in a shared pool, packers that wait for readers could keep the readers from running."""
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seatrial-archive")
    try:
        return asyncio.get_running_loop().run_in_executor(pool, work)
    finally:
        pool.shutdown(wait=False)


def _produce(file: int, write: Callable[[IO[bytes]], None]) -> None:
    try:
        with os.fdopen(file, "wb") as pipe:
            write(pipe)
    except BrokenPipeError:
        return  # the receiver stopped reading, and reports why


def _consume(file: int, read: Callable[[IO[bytes]], None]) -> None:
    with os.fdopen(file, "rb") as pipe:
        read(pipe)
        # An archive is a little longer than its last file. Much more than that is not read.
        for _ in range(_TRAILER):
            if not pipe.read(_CHUNK):
                break


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _pack_tree(source: Path, pipe: IO[bytes], added: Mapping[str, Path]) -> None:
    """Regular files, directories and links; nothing else is opened or passed on."""
    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for name, path in added.items():
            tar.add(path, name, recursive=False, filter=_owned_by_root)
        for folder, folders, files in os.walk(source):
            for name in sorted([*folders, *files]):
                path = Path(folder) / name
                if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                    tar.add(path, str(path.relative_to(source)), recursive=False, filter=_owned_by_root)


def _pack_file(source: Path, name: str, pipe: IO[bytes]) -> None:
    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT, dereference=True) as tar:
        tar.add(source, name, recursive=False, filter=_owned_by_root)


def _unpack_file(pipe: IO[bytes], target: Path, limits: TransferLimits) -> None:
    with tarfile.open(fileobj=pipe, mode="r|") as tar:
        member = tar.next()
        content = tar.extractfile(member) if member is not None and member.isreg() else None
        if member is None or content is None:
            raise TransferRefused(f"{target.name} is not a regular file in the sandbox.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as parent:
            _Files(parent, Budget(limits)).write([target.name], member, content)


def _unpack_tree(pipe: IO[bytes], target: Path, limits: TransferLimits, left_out: LeftOut) -> None:
    budget = Budget(limits)
    with host_directory(target) as root, tarfile.open(fileobj=pipe, mode="r|") as tar:
        files = _Files(root, budget)
        for member in tar:
            parts = [part for part in member.name.split("/") if part not in ("", ".")]
            if not parts:
                continue
            if reason := files.add(parts, member, tar):
                left_out.add("/".join(parts), reason)
                if budget.files >= limits.files or member.size > limits.bytes or time.monotonic() > budget.until:
                    left_out.add(".", "the rest was not looked at")
                    return


class _Files:
    """Writes below one open directory, by names that are never followed as links."""

    def __init__(self, root: int, budget: Budget) -> None:
        self._root = root
        self._budget = budget

    def add(self, parts: list[str], member: tarfile.TarInfo, tar: tarfile.TarFile) -> str:
        """Returns why it was left out, or nothing."""
        if ".." in parts:
            return "its name leads out of the directory"
        if reason := self._budget.refusal("/".join(parts), len(parts), member.size if member.isreg() else 0):
            return reason
        self._budget.files += 1
        if member.isdir():
            with self._inside(parts) as directory:
                os.fchmod(directory, stat.S_IMODE(member.mode) & 0o777 | 0o700)
        elif member.isreg():
            content = tar.extractfile(member)
            assert content is not None
            self.write(parts, member, content)
        elif member.issym():
            return self._link(parts, member.linkname)
        elif member.islnk():
            return self._copy(parts, member)
        else:
            return "not a regular file"
        return ""

    def write(self, parts: list[str], member: tarfile.TarInfo, content: IO[bytes]) -> None:
        limit = self._budget.limits.bytes
        with self._inside(parts[:-1]) as parent, fresh_file(parent, parts[-1]) as file:
            while data := content.read(_CHUNK):
                self._budget.bytes += len(data)
                if self._budget.bytes > limit:
                    raise TransferRefused(f"{printable(parts[-1])} is larger than the {limit >> 20} MB that are left.")
                if data.count(0) == len(data):
                    os.lseek(file, len(data), os.SEEK_CUR)
                else:
                    _write_all(file, data)
            os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
            os.fchmod(file, stat.S_IMODE(member.mode) & 0o777)
            os.utime(file, (member.mtime, member.mtime))

    def _link(self, parts: list[str], destination: str) -> str:
        if leads_out(destination, "/".join(parts)):
            return "a link that leads out of the directory"
        with self._inside(parts[:-1]) as parent:
            clear(parent, parts[-1])
            os.symlink(destination, parts[-1], dir_fd=parent)
        return ""

    def _copy(self, parts: list[str], member: tarfile.TarInfo) -> str:
        """A hard link to a file that came before becomes a copy."""
        origin = [part for part in member.linkname.split("/") if part not in ("", ".")]
        if ".." in origin or not origin:
            return "another name of a file outside of the directory"
        if origin == parts:
            return ""
        try:
            with self._inside(origin[:-1]) as folder:
                file = os.open(origin[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return "another name of a file that is not there"
        with os.fdopen(file, "rb") as content:
            self.write(parts, member, content)
        return ""

    @contextmanager
    def _inside(self, parts: list[str]) -> Iterator[int]:
        """The directory of that name, made where it is missing; a link in its place is replaced."""
        directory = os.dup(self._root)
        try:
            for part in parts:
                below = made_directory(directory, part)
                os.close(directory)
                directory = below
            yield directory
        finally:
            os.close(directory)
