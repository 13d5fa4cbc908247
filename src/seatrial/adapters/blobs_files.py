"""Blobs as files in a folder of this machine. Opened by ``wiring``.

A file is written beside its final place and renamed, so that a crash leaves no partial file; what it may leave is an
unfinished ``name#…`` that no listing shows. Files are not flushed to disk one by one: after a power cut a trial's
newest files may be missing, and reading them says so.

The folder may belong to an account without rights, that of the API's process, while a worker is root. So the folder's
owner decides what is done in it: threads act as that account, see ``system.file_owner``. Only a move out of a worker's
own directory needs root; the file is given to the account first, and goes only into a folder that is the account's.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

from seatrial.adapters.blobs_shared import key_of, path_of, take_each
from seatrial.adapters.owned_folder import Handle, make_folder, move_into, open_folder
from seatrial.errors import InvalidInput, NotFound, StorageFull, StoreUnavailable
from seatrial.ports.blobs import PLAIN_KEY, BlobInfo, checked_key
from seatrial.system.fair_threads import FairThreads, yield_turn
from seatrial.system.file_owner import act_as, act_as_oneself

_THREADS = 16
_CHUNK = 1 << 20
_LISTED_AT_ONCE = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)


class FileBlobs:
    """Safe to use from many trials at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._here = threading.local()
        """Each piece of work has the folder open as ``root``. All names are looked up from there, so an account that
        may not pass the folders above can use it. The folder may be replaced in between."""
        self._threads = FairThreads("blobs", _THREADS)
        self._movers = FairThreads("blobs-move", _THREADS)

    @classmethod
    def in_directory(cls, folder: Path) -> Self:
        make_folder(folder)
        return cls(folder)

    async def put_file(self, key: str, source: Path) -> int:
        path = path_of(key)
        file = Handle(os.open(source, os.O_RDONLY | os.O_CLOEXEC))  # by this process: the account may not read it
        return await self._put(key, lambda: self._write(path, _pieces(file)))

    async def take_file(self, key: str, source: Path) -> int:
        if PLAIN_KEY.fullmatch(checked_key(key)):
            size = source.stat().st_size
            if await self._move(path_of(key), source):
                return size
        return await self.put_file(key, source)

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        plain = all(PLAIN_KEY.fullmatch(checked_key(f"{prefix}/{name}")) for name in names)
        if plain and names:
            sizes = [(root / name).lstat().st_size for name in names]
            if await self._move(path_of(prefix), root, replacing=False):
                return sizes
        return await take_each(self.take_file, prefix, root, names)

    async def put_bytes(self, key: str, data: bytes) -> None:
        path = path_of(key)
        await self._put(key, lambda: self._write(path, (data,)))

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        path = path_of(key)

        def work() -> bytes:
            with self._opened(path) as file:
                size = os.fstat(file).st_size
                end = size if length is None else min(start + length, size)
                return b"".join(_range(file, start, end))

        return await self._run(key, work)

    async def stream(self, key: str, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        path = path_of(key)
        file = await self._run(key, lambda: Handle(self._open(path)))
        end = sys.maxsize if length is None else start + length

        def read(place: int) -> bytes:
            return os.pread(file.number, min(end - place, _CHUNK), place)

        while start < end and (piece := await self._run(key, partial(read, start))):
            yield piece
            start += len(piece)

    async def info(self, key: str) -> BlobInfo:
        path = path_of(key)

        def work() -> BlobInfo:
            with self._opened(path) as file:
                return _info(key, os.fstat(file))

        return await self._run(key, work)

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        found = self._found(path_of(prefix) if prefix else "")
        while some := await self._run(prefix, lambda: _some(found)):
            for path, facts in some:
                yield _info(key_of(path), facts)

    async def delete(self, prefix: str) -> int:
        if not prefix:
            raise InvalidInput("Everything at once is never deleted.", field="prefix")
        path = path_of(prefix)
        return await self._run(prefix, lambda: self._delete(path))

    async def _put(self, key: str, work: Callable[[], int]) -> int:
        """Who writes asks for nothing, so what is not found is the place itself."""
        try:
            return await self._run(key, work)
        except NotFound as fault:
            problem = f"There is no place for {key} at {self._folder}."
            raise StoreUnavailable(problem, fix="Make that folder, or set SEATRIAL_BLOBS_URL to another.") from fault

    async def _run[T](self, key: str, work: Callable[[], T]) -> T:
        def acting() -> T:
            act_as_oneself()
            self._here.root, owner = open_folder(self._folder)
            try:
                if owner is not None:
                    act_as(owner)
                return work()
            finally:
                os.close(self._here.root)

        with _boundary(key):
            return await self._threads.run(acting)

    async def _move(self, path: str, source: Path, replacing: bool = True) -> bool:
        """One rename for a file or a folder; says no where it has to be copied, to another disk for one.

        The account's thread opens the place, this process's own thread puts the file there."""
        name = os.path.basename(path)  # noqa: PTH119

        def opened() -> tuple[bool, Handle | None, int]:
            """Whether it is done; else the folder that it has to go to, and whose all files are."""
            uid = os.fstat(self._root).st_uid
            if not replacing and self._is_there(path):
                return False, None, uid
            parent = Handle(self._parent(path))
            own = uid == os.geteuid()
            return (move_into(parent, name, source, uid), None, uid) if own else (False, parent, uid)

        try:
            done, parent, uid = await self._run(path, opened)
        except NotFound:
            return False
        return done or (parent is not None and await self._movers.run(move_into, parent, name, source, uid))

    @property
    def _root(self) -> int:
        root: int = self._here.root
        return root

    def _open(self, path: str) -> int:
        file = os.open(path, _READ, dir_fd=self._root)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return file

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        file = self._open(path)
        try:
            yield file
        finally:
            os.close(file)

    def _is_there(self, path: str) -> bool:
        try:
            os.stat(path, dir_fd=self._root, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _parent(self, path: str) -> int:
        """The folder of a path, open; it is made where it is missing."""
        parent = os.path.dirname(path) or "."  # noqa: PTH120
        for _ in range(3):  # somebody may remove it as empty in the same moment
            try:
                return os.open(parent, _FOLDER, dir_fd=self._root)
            except FileNotFoundError:
                self._make(parent)
        return os.open(parent, _FOLDER, dir_fd=self._root)

    def _make(self, folder: str) -> None:
        place = ""
        for name in folder.split("/"):
            place = f"{place}/{name}" if place else name
            try:
                os.mkdir(place, dir_fd=self._root)
            except FileExistsError:
                continue
            except FileNotFoundError:  # a parent was removed meanwhile; the caller makes it again
                return

    def _write(self, path: str, pieces: Iterator[bytes] | tuple[bytes, ...]) -> int:
        parent = self._parent(path)
        name = os.path.basename(path)  # noqa: PTH119
        unfinished = f"{name}#{secrets.token_hex(4)}"
        try:
            size = 0
            file = os.open(unfinished, _MAKE, 0o644, dir_fd=parent)
            try:
                with open(file, "wb", buffering=0) as sink:  # noqa: PTH123 - a descriptor
                    for piece in pieces:
                        size += _write_all(sink.fileno(), piece)
                        yield_turn()
                os.rename(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(unfinished, dir_fd=parent)
                raise
            return size
        finally:
            os.close(parent)

    def _found(self, prefix: str, folders: deque[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """Files below a folder. Adds to ``folders`` those that it goes through."""
        places = [prefix]
        while places:
            place = places.pop()
            if folders is not None:
                folders.append(place)
            for name, facts in self._entries(place):
                path = f"{place}/{name}" if place else name
                if stat.S_ISDIR(facts.st_mode):
                    places.append(path)
                elif stat.S_ISREG(facts.st_mode) and "#" not in name:
                    yield path, facts

    def _entries(self, place: str) -> Iterator[tuple[str, os.stat_result]]:
        try:
            folder = os.open(place or ".", _FOLDER | os.O_NOFOLLOW, dir_fd=self._root)
        except OSError as error:
            if error.errno in _MISSING:
                return
            raise
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield entry.name, entry.stat(follow_symlinks=False)
        finally:
            os.close(folder)

    def _delete(self, path: str) -> int:
        folders: deque[str] = deque()
        gone = 0
        for doomed in [*(found for found, _ in self._found(path, folders)), path]:
            yield_turn()
            try:
                os.unlink(doomed, dir_fd=self._root)
                gone += 1
            except OSError as error:
                if error.errno not in _MISSING:
                    raise
        with suppress(OSError):  # not empty
            for folder in reversed(folders):
                os.rmdir(folder, dir_fd=self._root)
            while path := os.path.dirname(path):  # noqa: PTH120
                os.rmdir(path, dir_fd=self._root)
        return gone


def _pieces(file: Handle) -> Iterator[bytes]:
    while piece := os.read(file.number, _CHUNK):
        yield piece


def _write_all(file: int, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    return len(data)


def _range(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(file, min(end - start, _CHUNK), start)):
        start += len(piece)
        yield piece


def _info(key: str, facts: os.stat_result) -> BlobInfo:
    return BlobInfo(key=key, size=facts.st_size, modified_at=datetime.fromtimestamp(facts.st_mtime, UTC))


def _some[T](found: Iterator[T]) -> list[T]:
    return list(islice(found, _LISTED_AT_ONCE))


@contextmanager
def _boundary(key: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if fault.errno in _MISSING:
            raise NotFound(f"There is no file {key}.") from fault
        if fault.errno == errno.ENOSPC:
            raise StorageFull(f"There is no room left to keep {key}.") from fault
        raise StoreUnavailable(f"The files could not be reached at {key}: {fault.strerror or fault}") from fault
