"""Uploaded archives: each is written to its own folder, limited in size, and deleted when the request ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import HTTPException, UploadFile

from seatrial.system.removal import scratch_directory

_PIECE = 1 << 20


@dataclass(frozen=True)
class Upload:
    filename: str
    """The name that the client sent; never used as a path."""
    path: Path


@asynccontextmanager
async def received(files: Sequence[UploadFile], limit_bytes: int) -> AsyncIterator[list[Upload]]:
    """The uploads as files on disk. Memory stays flat; all of them together may be as large as the limit."""
    with scratch_directory("seatrial-upload-") as scratch:
        left = limit_bytes
        uploads: list[Upload] = []
        for number, file in enumerate(files):
            path = scratch / str(number) / _file_name(file.filename or "")
            path.parent.mkdir()
            left -= await _write(file, path, left)
            uploads.append(Upload(file.filename or f"archive {number + 1}", path))
        yield uploads


async def _write(file: UploadFile, path: Path, limit_bytes: int) -> int:
    written = 0
    with path.open("wb") as sink:
        while piece := await file.read(_PIECE):
            written += len(piece)
            if written > limit_bytes:
                raise HTTPException(413, f"{file.filename} is too large.")
            await asyncio.to_thread(sink.write, piece)
    return written


def _file_name(filename: str) -> str:
    """A safe form of the client's file name. A task at the top of an archive is named after the file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", filename.rsplit("/", 1)[-1])[-100:].lstrip(".-") or "archive.zip"
