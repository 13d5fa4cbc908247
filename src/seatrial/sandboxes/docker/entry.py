"""Small files of a container and its users, read through the engine. Nothing of it is trusted."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import dataclass

from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.host.accounts import SIZE_LIMIT, Account, account_in

_HEADERS = 1 << 16
"""Bytes that an archive may have before a file's content."""


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


async def find_account(engine: EngineClient, container: str, wanted: str) -> Account:
    """A user by ``name``, ``uid``, ``name:group`` or ``uid:gid``, as Docker reads them; root for an empty string.

    The engine resolves names for the agent's commands but not for the verifier's. The agent may add users, so this is
    read for each command."""

    async def text(path: str) -> str:
        """Empty if there is no such file, or a link or something else in its place."""
        entry = await read_entry(engine, container, path, SIZE_LIMIT)
        return entry.content.decode(errors="replace") if entry is not None and entry.is_file else ""

    return account_in(await text("/etc/passwd"), await text("/etc/group"), wanted)
