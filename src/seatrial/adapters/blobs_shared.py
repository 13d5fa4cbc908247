"""What storing in a folder and in a bucket have in common: the path of a key, and how the files of a folder are taken.

A name with ``#`` in it is an unfinished file, in ours and in obstore's writing, so that sign is escaped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import batched
from pathlib import Path

from seatrial.ports.blobs import checked_key

_FILES_AT_ONCE = 8


def path_of(key: str) -> str:
    return checked_key(key).replace("%", "%25").replace("#", "%23")


def key_of(path: str) -> str:
    return path.replace("%23", "#").replace("%25", "%")


async def take_each(
    take_file: Callable[[str, Path], Awaitable[int]], prefix: str, root: Path, names: Sequence[str]
) -> list[int]:
    """Takes the files of a folder, a few at a time. Returns their sizes."""
    taken: list[int] = []
    for some in batched(names, _FILES_AT_ONCE):
        taken += await asyncio.gather(*(take_file(f"{prefix}/{name}", root / name) for name in some))
    return taken
