"""One file for a final state, to bring it to another machine: a compressed tar with the written parts of the disk.

The tree below ``files`` comes from a sandbox, so unpacking creates regular files and folders only, each name checked,
in a folder that no other process knows. Links are left out on the way in. Sizes are bounded.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_PIECE = 8 << 20
_RECORD, _FILES, _DISK = "agent.json", "files", "disk"
_DISK_SIZE = f"{_DISK}/size"
_OFFSET = re.compile(rf"{_DISK}/(\d{{1,15}})")
_MOST_MEMBERS = 2_000_000
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def pack(folder: Path, archive: Path) -> None:
    """Blocking."""
    with tarfile.open(archive, "x:gz", compresslevel=1) as tar:
        _add(tar, _RECORD, (folder / _RECORD).read_bytes())
        if (disk := folder / _DISK).is_file():
            _add(tar, _DISK_SIZE, str(disk.stat().st_size).encode())
            for offset, content in _written(disk):
                _add(tar, f"{_DISK}/{offset}", content)
        for place, _, names in os.walk(folder / _FILES):
            for name in names:
                _add_file(tar, Path(place) / name, folder)


def unpack(archive: Path, folder: Path, most_bytes: int) -> None:
    """Makes ``folder``. Raises ``ValueError`` or ``OSError`` for anything that ``pack`` does not write."""
    folder.mkdir(mode=0o700)
    left = most_bytes
    with tarfile.open(archive, "r:gz") as tar:
        for number, member in enumerate(tar):
            left -= member.size
            if not member.isreg() or left < 0 or number > _MOST_MEMBERS:
                raise ValueError("it has members that no final state has, or too many")
            content = tar.extractfile(member)
            assert content is not None
            _take(folder, member.name, content)


def scramble(source: Path, target: Path, key: bytes) -> None:
    """Encrypts a file, or decrypts it again. A state may contain keys that the agent was given, and the blobs must not
    have them in plain text. The key is for one file only. Changes are not noticed here: store the file's digest with
    its key."""
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    with source.open("rb") as origin, os.fdopen(os.open(target, _CREATE, 0o600), "wb") as goal:
        while piece := origin.read(_PIECE):
            goal.write(stream.update(piece))
        goal.write(stream.finalize())


def _take(folder: Path, name: str, content: IO[bytes]) -> None:
    if name == _DISK_SIZE:
        with os.fdopen(os.open(folder / _DISK, _CREATE, 0o600), "wb") as disk:
            disk.truncate(int(content.read(20)))
    elif piece := _OFFSET.fullmatch(name):
        with (folder / _DISK).open("r+b") as disk:
            os.pwrite(disk.fileno(), content.read(_PIECE), int(piece[1]))
    elif name == _RECORD:
        _write(folder / name, content)
    else:
        path = PurePosixPath(name)
        if path.parts[0] != _FILES or path.is_absolute() or ".." in path.parts or "\0" in name:
            raise ValueError("it has a name that no final state has")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _write(folder / path, content)


def _write(place: Path, content: IO[bytes]) -> None:
    with os.fdopen(os.open(place, _CREATE, 0o600), "wb") as file:
        while piece := content.read(_PIECE):
            file.write(piece)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _add_file(tar: tarfile.TarFile, place: Path, folder: Path) -> None:
    try:
        with os.fdopen(os.open(place, _READ), "rb") as file:
            if not place.is_symlink() and place.is_file():
                member = tarfile.TarInfo(str(place.relative_to(folder)))
                member.size = os.fstat(file.fileno()).st_size
                tar.addfile(member, file)
    except OSError as error:
        if error.errno != errno.ELOOP:  # a link is left out
            raise


def _written(disk: Path) -> Iterator[tuple[int, bytes]]:
    with disk.open("rb") as file:
        number, size, end = file.fileno(), disk.stat().st_size, 0
        while end < size:
            try:
                place = os.lseek(number, end, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return
            end = os.lseek(number, place, os.SEEK_HOLE)
            while place < end:
                content = os.pread(number, min(_PIECE, end - place), place)
                yield place, content
                place += len(content)
