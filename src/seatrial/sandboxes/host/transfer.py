"""Files into and out of a sandbox, without any program of its image.

``oci`` calls this through ``PrivateMounts``: the host's side is reached through directories opened beforehand, the
sandbox's side by path from inside it, where its links cannot lead out. Its files are hostile: pipes and devices are
never opened, links that would point out of the target directory are left out, and what is left out is said.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from seatrial.fair_threads import breathe
from seatrial.growing_files import FileView, look_into
from seatrial.sandboxes.host.private_mounts import PrivateMounts

_CHUNK = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


_TOP = PurePosixPath()


class Transfer:
    """Copies between this machine and what one process of a sandbox sees."""

    def __init__(self, mounts: PrivateMounts, process: int) -> None:
        self._mounts = mounts
        self._process = process

    def put_file(self, source: Path, target: str) -> None:
        with _opened(source, os.O_RDONLY | os.O_CLOEXEC) as content, self._mounts.inside(self._process):
            status = os.fstat(content)
            path = Path(target)
            if target.endswith("/") or path.is_dir():
                path = path / source.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with _opened(path.parent, _DIRECTORY) as parent:
                _write_file(content, status, parent, path.name, 0o7777)

    def put_tree(self, source: Path, target: str) -> None:
        """Copies the content of a directory over what is there."""
        with (
            _opened(source, _DIRECTORY) as origin,
            _opened(Path("/proc/thread-self/fd"), _DIRECTORY) as descriptors,
            self._mounts.inside(self._process),
        ):
            Path(target).mkdir(parents=True, exist_ok=True)
            with _opened(Path(target), _DIRECTORY) as goal:
                _Tree(descriptors, trusted=True).copy(origin, goal)

    def get_file(self, source: str, target: Path) -> None:
        """Raises ``FileNotFoundError``, or ``OSError`` for anything but a regular file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _opened(target.parent, _DIRECTORY) as parent,
            _opened(Path("/proc/thread-self/fd"), _DIRECTORY) as descriptors,
            self._mounts.inside(self._process),
            _opened(Path(source), os.O_PATH | os.O_CLOEXEC) as found,
            _reopened(found, descriptors) as content,
        ):
            _write_file(content, os.fstat(content), parent, target.name)

    def get_tree(self, source: str, target: Path) -> list[str]:
        """Copies the content of a directory; returns what was left out, and why."""
        target.mkdir(parents=True, exist_ok=True)
        tree = _Tree(0, trusted=False)
        with (
            _opened(target, _DIRECTORY) as goal,
            _opened(Path("/proc/thread-self/fd"), _DIRECTORY) as descriptors,
            self._mounts.inside(self._process),
            _opened(Path(source), _DIRECTORY) as origin,
        ):
            tree.descriptors = descriptors
            tree.copy(origin, goal)
        return tree.left_out

    def make_dirs(self, paths: list[str], mode: int) -> None:
        with self._mounts.inside(self._process):
            for path in paths:
                Path(path).mkdir(parents=True, exist_ok=True)
                Path(path).chmod(mode)

    def empty(self, paths: list[str]) -> None:
        """Removes what is in directories, and not the directories."""
        with self._mounts.inside(self._process):
            for path in paths:
                for entry in Path(path).iterdir():
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry)
                    else:
                        entry.unlink()

    def make_executable(self, path: str) -> bool:
        """``chmod +x`` as root would; says whether there was such a file."""
        with self._mounts.inside(self._process):
            file = Path(path)
            if not file.is_file():
                return False
            file.chmod(stat.S_IMODE(file.stat().st_mode) | 0o111)
            return True

    def is_dir(self, path: str) -> bool:
        with self._mounts.inside(self._process):
            return Path(path).is_dir()

    def is_file(self, path: str) -> bool:
        with self._mounts.inside(self._process):
            return Path(path).is_file()

    def look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> list[FileView]:
        """What grows in directories, given by the prefix under which their files are told."""
        found: list[FileView] = []
        with self._mounts.inside(self._process):
            for prefix, path in folders.items():
                with suppress(OSError), _opened(Path(path), _DIRECTORY) as directory:
                    found += look_into(directory, prefix, seen, wanted)
        return found

    def present(self, paths: list[str]) -> list[str]:
        """Those of the paths that lead to something executable."""
        with self._mounts.inside(self._process):
            return [path for path in paths if os.access(path, os.X_OK)]


class _Tree:
    """Copies a tree between two open directories."""

    def __init__(self, descriptors: int, *, trusted: bool) -> None:
        self.descriptors = descriptors
        self.left_out: list[str] = []
        self._trusted = trusted

    def copy(self, origin: int, goal: int, above: PurePosixPath = _TOP) -> None:
        for name in sorted(os.listdir(origin)):
            place = above / name
            breathe()
            try:
                with _looked_at(name, origin) as found:
                    self._copy_entry(found, name, goal, place)
            except FileNotFoundError:
                continue  # gone while we copied

    def _copy_entry(self, found: int, name: str, goal: int, place: PurePosixPath) -> None:
        status = os.fstat(found)
        if stat.S_ISDIR(status.st_mode):
            with _made_directory(goal, name) as inner:
                with _reopened(found, self.descriptors, directory=True) as outer:
                    self.copy(outer, inner, place)
                os.fchmod(inner, stat.S_IMODE(status.st_mode) | (0 if self._trusted else 0o700))
        elif stat.S_ISLNK(status.st_mode):
            self._copy_link(os.readlink("", dir_fd=found), name, goal, place)
        elif stat.S_ISREG(status.st_mode):
            with _reopened(found, self.descriptors) as content:
                _write_file(content, status, goal, name, 0o7777 if self._trusted else 0o1777)
        else:
            self.left_out.append(f"{place}: not a regular file")

    def _copy_link(self, destination: str, name: str, goal: int, place: PurePosixPath) -> None:
        if not self._trusted and _leads_out(destination, place):
            self.left_out.append(f"{place}: a link to {destination}, outside of the directory")
            return
        _clear(goal, name)
        os.symlink(destination, name, dir_fd=goal)


def _leads_out(destination: str, place: PurePosixPath) -> bool:
    """Whether a link would, on this machine, point anywhere but into the copied tree."""
    parts = destination.split("/")
    ups = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    # Going up from a name that may itself be a link leads who knows where.
    return destination.startswith("/") or ups >= len(place.parts) or ".." in parts[ups:]


def _write_file(content: int, status: os.stat_result, parent: int, name: str, modes: int = 0o1777) -> None:
    with _fresh_file(parent, name) as copy:
        if status.st_blocks * 512 < status.st_size:
            _copy_data(content, copy, status.st_size)
        else:
            _copy_all(content, copy)
        os.fchmod(copy, stat.S_IMODE(status.st_mode) & modes)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_all(content: int, copy: int) -> None:
    while chunk := os.read(content, _CHUNK):
        breathe()
        view = memoryview(chunk)
        while view:
            view = view[os.write(copy, view) :]


def _copy_data(content: int, copy: int, size: int) -> None:
    """Leaves holes holes: a terabyte that nobody wrote takes no room on this side either."""
    place = 0
    while place < size:
        try:
            place = os.lseek(content, place, os.SEEK_DATA)
        except OSError:  # nothing but a hole from here on
            break
        end = os.lseek(content, place, os.SEEK_HOLE)
        while place < end and (chunk := os.pread(content, min(_CHUNK, end - place), place)):
            place += os.pwrite(copy, chunk, place)
            breathe()
    os.ftruncate(copy, size)


@contextmanager
def _fresh_file(parent: int, name: str) -> Iterator[int]:
    try:
        _clear(parent, name)
        file = os.open(name, _CREATE, 0o600, dir_fd=parent)
    except OSError as error:
        if error.errno != 16:  # a mounted file, such as /etc/hosts, is filled and not replaced
            raise
        file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise
        os.ftruncate(file, 0)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _made_directory(parent: int, name: str) -> Iterator[int]:
    for _ in range(3):
        try:
            os.mkdir(name, 0o755, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=parent)
                continue
        break
    directory = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield directory
    finally:
        os.close(directory)


def _clear(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _looked_at(name: str, parent: int) -> Iterator[int]:
    """A handle that can be asked what it is without opening it."""
    file = os.open(name, _LOOK, dir_fd=parent)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _reopened(found: int, descriptors: int, *, directory: bool = False) -> Iterator[int]:
    """Opens exactly what was looked at, if it is of the right kind; a swapped name does not matter."""
    mode = os.fstat(found).st_mode
    if not (stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)):
        raise OSError(22, "not a directory" if directory else "not a regular file")
    file = os.open(str(found), os.O_RDONLY | os.O_CLOEXEC, dir_fd=descriptors)
    try:
        yield file
    finally:
        os.close(file)
