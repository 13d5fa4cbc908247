"""The kept log of a build: written as it comes, limited in size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.sandboxes.images.image import LogSink

LIMIT = 64 << 20


@contextmanager
def kept_log(path: Path, also: LogSink, limit: int = LIMIT) -> Iterator[LogSink]:
    """A sink that writes to ``path`` and hands on to ``also``; both stop at ``limit`` characters, and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace") as stream:
        left = limit

        def write(text: str) -> None:
            nonlocal left
            if left <= 0:
                return
            piece = text[:left]
            left -= len(piece)
            if left <= 0:
                piece += f"\n… the rest of the output is not kept: more than {limit} characters.\n"
            stream.write(piece)
            stream.flush()
            also(piece)

        yield write
