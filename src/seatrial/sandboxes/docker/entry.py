"""One small file of a container, read through the engine. ``accounts`` and ``changes`` ask; it is not trusted."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import dataclass

from seatrial.sandboxes.docker.client import EngineClient, EngineRefused

_HEADERS = 1 << 16
"""What an archive may have in front of a file's content."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file's content up to the limit, or where a link leads."""

    content: bytes
    is_file: bool


async def read_entry(engine: EngineClient, container: str, path: str, limit: int) -> Entry | None:
    """``None`` if there is nothing, or neither a file nor a link. Links are not followed."""
    data = bytearray()
    try:
        async with engine.stream("GET", f"/containers/{container}/archive", query={"path": path}) as answer:
            async for piece in answer.content.iter_chunked(1 << 18):
                data += piece
                if len(data) >= limit + _HEADERS:
                    break
    except EngineRefused as error:
        if error.status in (400, 404):  # 400: a part of the path is no directory
            return None
        raise
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|") as tar:
            member = tar.next()
            if member is None:
                return None
            if member.issym():
                return Entry(os.fsencode(member.linkname), is_file=False)
            content = tar.extractfile(member) if member.isreg() else None
            return Entry(content.read(min(limit, member.size)), is_file=True) if content is not None else None
    except tarfile.TarError:
        return None
