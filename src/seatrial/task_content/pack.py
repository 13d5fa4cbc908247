"""Packs a task into a reproducible ZIP file.

Called by ``seatrial task pack`` and by the client.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from pathlib import Path

from seatrial.errors import InvalidInput
from seatrial.task_content.tree import walk

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_CHUNK = 256 * 1024


def pack(task_dir: Path, target: Path) -> Path:
    """Writes ``target`` with the task under its folder's name: sorted, without dates, with executable bits and
    links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as sink, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in walk(task_dir):
                if not entry.is_file and not entry.is_link:
                    raise InvalidInput(f"{entry.path} is neither a file nor a link and cannot be packed.")
                _add(archive, f"{task_dir.resolve().name}/{entry.path}", entry.source, entry.mode)
        Path(partial).chmod(0o644)
        Path(partial).replace(target)
    finally:
        Path(partial).unlink(missing_ok=True)
    return target


def _add(archive: zipfile.ZipFile, name: str, source: Path, mode: int) -> None:
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.create_system = 3
    info.compress_type = zipfile.ZIP_DEFLATED
    if stat.S_ISLNK(mode):
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, os.readlink(source))  # noqa: PTH115 - the link's target as written
        return
    info.external_attr = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)) << 16
    with source.open("rb") as content, archive.open(info, "w") as sink:
        while piece := content.read(_CHUNK):
            sink.write(piece)
