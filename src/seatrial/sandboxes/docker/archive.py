"""Directories as tar streams: packed from this machine's files, unpacked from a sandbox's hostile ones.

``files`` are moved this way, since an engine offers no other. Memory stays flat: threads pack and unpack while the
event loop carries the bytes. Unpacking never follows a link, never makes one that leads out of the target, and never
opens a pipe or a device; what is left out is said.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

_CHUNK = 1 << 18
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LIMIT = 16 << 30
"""Bytes that one download may bring; a sparse file can claim any size."""


class TransferRefused(OSError):
    """A sandbox's files cannot be brought out."""


async def packed_tree(source: Path) -> AsyncIterator[bytes]:
    """The content of a directory, owned by root."""
    async for data in _written_by(lambda pipe: _pack_tree(source, pipe)):
        yield data


async def packed_build(context: Path, name: str, dockerfile: Path) -> AsyncIterator[bytes]:
    """The same, with a Dockerfile from elsewhere under that name."""
    async for data in _written_by(lambda pipe: _pack_tree(context, pipe, {name: dockerfile})):
        yield data


async def packed_file(source: Path, name: str) -> AsyncIterator[bytes]:
    async for data in _written_by(lambda pipe: _pack_file(source, name, pipe)):
        yield data


class Unpacking:
    """Takes a tar stream piece by piece; ``finish`` waits for the last file and returns what was left out."""

    def __init__(self, read: Callable[[IO[bytes]], list[str]]) -> None:
        near, far = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(far, False)
        self._file = far
        self._done = _in_a_thread(lambda: _consume(near, read))

    @classmethod
    def tree(cls, target: Path, *, strip: int = 0) -> Unpacking:
        """Into a directory; ``strip`` names at the front of each path are dropped."""
        return cls(lambda pipe: _unpack_tree(pipe, target, strip))

    @classmethod
    def file(cls, target: Path) -> Unpacking:
        """One regular file, whatever its name in the stream."""
        return cls(lambda pipe: _unpack_file(pipe, target))

    async def take(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._file, view) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await _ready(self._file, loop.add_writer, loop.remove_writer)

    async def finish(self) -> list[str]:
        self._close()
        return await self._done

    async def abandon(self) -> None:
        self._close()
        await asyncio.gather(self._done, return_exceptions=True)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


async def _written_by(write: Callable[[IO[bytes]], None]) -> AsyncIterator[bytes]:
    near, far = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(near, False)
    done = _in_a_thread(lambda: _produce(far, write))
    loop = asyncio.get_running_loop()
    try:
        while True:
            try:
                data = os.read(near, _CHUNK)
            except BlockingIOError:
                await _ready(near, loop.add_reader, loop.remove_reader)
                continue
            if not data:
                break
            yield data
        await done
    finally:
        os.close(near)
        await asyncio.gather(done, return_exceptions=True)


def _in_a_thread[T](work: Callable[[], T]) -> asyncio.Future[T]:
    """A thread of its own: in a shared pool, packers that wait for readers could keep the readers from running."""
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seatrial-archive")
    try:
        return asyncio.get_running_loop().run_in_executor(pool, work)
    finally:
        pool.shutdown(wait=False)


async def _ready(file: int, add: Callable[..., None], remove: Callable[[int], object]) -> None:
    ready = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    add(file, wake)
    try:
        await ready
    finally:
        remove(file)


def _produce(file: int, write: Callable[[IO[bytes]], None]) -> None:
    try:
        with os.fdopen(file, "wb") as pipe:
            write(pipe)
    except BrokenPipeError:
        return  # the receiver has heard enough, and says why itself


def _consume(file: int, read: Callable[[IO[bytes]], list[str]]) -> list[str]:
    with os.fdopen(file, "rb") as pipe:
        try:
            return read(pipe)
        finally:
            while pipe.read(_CHUNK):  # the sender is not to blame for what went wrong here
                pass


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _pack_tree(source: Path, pipe: IO[bytes], besides: Mapping[str, Path] | None = None) -> None:
    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for name, path in (besides or {}).items():
            tar.add(path, name, recursive=False, filter=_owned_by_root)
        for folder, folders, files in os.walk(source):
            for name in sorted([*folders, *files]):
                path = Path(folder) / name
                tar.add(path, str(path.relative_to(source)), recursive=False, filter=_owned_by_root)


def _pack_file(source: Path, name: str, pipe: IO[bytes]) -> None:
    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT, dereference=True) as tar:
        tar.add(source, name, recursive=False, filter=_owned_by_root)


def _unpack_file(pipe: IO[bytes], target: Path) -> list[str]:
    with tarfile.open(fileobj=pipe, mode="r|") as tar:
        member = tar.next()
        content = tar.extractfile(member) if member is not None and member.isreg() else None
        if member is None or content is None:
            raise TransferRefused(f"{target.name} is not a regular file in the sandbox.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _opened(target.parent) as parent:
            _Files(parent).write(PurePosixPath(target.name), member, content)
    return []


def _unpack_tree(pipe: IO[bytes], target: Path, strip: int) -> list[str]:
    target.mkdir(parents=True, exist_ok=True)
    left_out: list[str] = []
    with _opened(target) as root, tarfile.open(fileobj=pipe, mode="r|") as tar:
        files = _Files(root)
        for member in tar:
            place = PurePosixPath(*[part for part in PurePosixPath(member.name).parts if part != "/"][strip:])
            if not place.parts:
                continue
            reason = files.add(place, member, tar, strip)
            if reason:
                left_out.append(f"{place}: {reason}")
    return left_out


class _Files:
    """Writes below one open directory, by names that are never followed as links."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._size = 0

    def add(self, place: PurePosixPath, member: tarfile.TarInfo, tar: tarfile.TarFile, strip: int) -> str:
        """Returns why it was left out, or nothing."""
        if ".." in place.parts:
            return "its name leads out of the directory"
        if member.isdir():
            with self._inside(place) as directory:
                os.fchmod(directory, stat.S_IMODE(member.mode) & 0o777 | 0o700)
        elif member.isreg():
            content = tar.extractfile(member)
            assert content is not None
            self.write(place, member, content)
        elif member.issym():
            return self._link(place, member.linkname)
        elif member.islnk():
            return self._copy(place, member, strip)
        else:
            return "not a regular file"
        return ""

    def write(self, place: PurePosixPath, member: tarfile.TarInfo, content: IO[bytes]) -> None:
        with self._inside(place.parent) as parent, _fresh(parent, place.name) as file:
            while data := content.read(_CHUNK):
                self._size += len(data)
                if self._size > LIMIT:
                    raise TransferRefused(f"{place} and what came before it are larger than {LIMIT >> 30} GiB.")
                if data.count(0) == len(data):
                    os.lseek(file, len(data), os.SEEK_CUR)
                else:
                    _write_all(file, data)
            os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
            os.fchmod(file, stat.S_IMODE(member.mode) & 0o777)
            os.utime(file, (member.mtime, member.mtime))

    def _link(self, place: PurePosixPath, destination: str) -> str:
        if leads_out(destination, place):
            return f"a link to {destination}, outside of the directory"
        with self._inside(place.parent) as parent:
            _clear(parent, place.name)
            os.symlink(destination, place.name, dir_fd=parent)
        return ""

    def _copy(self, place: PurePosixPath, member: tarfile.TarInfo, strip: int) -> str:
        """A second name of a file that came before: becomes a file of its own."""
        origin = PurePosixPath(*[part for part in PurePosixPath(member.linkname).parts if part != "/"][strip:])
        if ".." in origin.parts or not origin.parts:
            return f"another name of {member.linkname}, outside of the directory"
        try:
            with self._inside(origin.parent) as folder:
                file = os.open(origin.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return f"another name of {member.linkname}, which is not there"
        with os.fdopen(file, "rb") as content:
            self.write(place, member, content)
        return ""

    @contextmanager
    def _inside(self, place: PurePosixPath) -> Iterator[int]:
        """The directory of that name, made where it is missing; a link in its place is replaced."""
        held = [os.dup(self._root)]
        try:
            for part in place.parts:
                held.append(_directory(held[-1], part))
            yield held[-1]
        finally:
            for file in held:
                os.close(file)


def leads_out(destination: str, place: PurePosixPath) -> bool:
    """Whether a link would, on this machine, point anywhere but into the copied tree."""
    parts = destination.split("/")
    ups = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    # Going up from a name that may itself be a link leads who knows where.
    return destination.startswith("/") or ups >= len(place.parts) or ".." in parts[ups:]


def _directory(parent: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError:
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


@contextmanager
def _fresh(parent: int, name: str) -> Iterator[int]:
    _clear(parent, name)
    file = os.open(name, _CREATE, 0o600, dir_fd=parent)
    try:
        yield file
    finally:
        os.close(file)


def _clear(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)
