"""Removes known secrets from live output and from the files of a try before they are saved.

Work on files blocks and is called in threads. Of a sparse file only the parts with data are read, so that a terabyte of
holes costs nothing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.system.fair_threads import yield_turn

REDACTED = b"[REDACTED]"
SHORTEST_SECRET = 6
"""Shorter values could be ordinary text. No provider key is that short."""
_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Redaction:
    """The secrets of one try."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode("utf-8", "surrogateescape") for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if known else None

    def clean(self, data: bytes) -> bytes:
        return self._pattern.sub(REDACTED, data) if self._pattern is not None else data

    def safe_end(self, data: bytes) -> int:
        """How much of ``data`` is safe to show. The rest may be the beginning of a secret."""
        if self._pattern is None:
            return len(data)
        end = len(data) - self._begun(data)
        for found in self._pattern.finditer(data):
            if found.start() < end < found.end():
                return found.start()
        return end

    def _begun(self, data: bytes) -> int:
        longest = min(len(self._secrets[0]) - 1, len(data))
        for length in range(longest, 0, -1):
            tail = data[-length:]
            if any(secret.startswith(tail) for secret in self._secrets):
                return length
        return 0


class FileRedaction:
    """The secrets of one try."""

    def __init__(self, secrets: Iterable[str], chunk: int = _CHUNK) -> None:
        known = {secret.encode("utf-8", "surrogateescape") for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._longest = max(map(len, known), default=0)
        self._chunk = max(chunk, 1)
        self._pattern = re.compile(b"|".join(map(re.escape, sorted(known, key=len, reverse=True)))) if known else None

    def name(self, path: str) -> str:
        """A path without secrets."""
        return path if self._pattern is None else os.fsdecode(self._pattern.sub(REDACTED, os.fsencode(path)))

    def clean(self, path: Path) -> int:
        """Replaces each secret in a text or binary file. Returns the new size."""
        with _opened(path, _READ) as source:
            status = os.fstat(source)
            if self._pattern is None or not self._is_mentioned(source, status.st_size, self._pattern):
                return status.st_size
            beside = _free_name(path.with_name("redacted~"))
            with _opened(beside, _MAKE) as sink:
                size = self._rewrite(source, status.st_size, sink, self._pattern)
                os.fchmod(sink, stat.S_IMODE(status.st_mode))
            beside.replace(path)
            return size

    def _is_mentioned(self, source: int, size: int, pattern: re.Pattern[bytes]) -> bool:
        for start, end in data_of(source, size):
            tail = b""
            for piece in self._pieces(source, start, end):
                window = tail + piece
                if pattern.search(window):
                    return True
                tail = window[-(self._longest - 1) :]
        return False

    def _rewrite(self, source: int, size: int, sink: int, pattern: re.Pattern[bytes]) -> int:
        """Holds back the last bytes of each piece, because a secret may span two pieces. Holes stay holes."""
        place = written = 0
        for start, end in data_of(source, size):
            written += start - place
            held = b""
            for piece in self._pieces(source, start, end):
                text = pattern.sub(REDACTED, held + piece)
                cut = max(len(text) - self._longest + 1, 0)
                written += _write(sink, text[:cut], written)
                held = text[cut:]
            written += _write(sink, pattern.sub(REDACTED, held), written)
            place = end
        written += size - place
        os.ftruncate(sink, written)
        return written

    def _pieces(self, source: int, start: int, end: int) -> Iterator[bytes]:
        while start < end and (piece := os.pread(source, min(self._chunk, end - start), start)):
            yield_turn()
            yield piece
            start += len(piece)


def data_of(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Start and end of each part of a file that is not a hole."""
    place = 0
    while place < size:
        try:
            start = os.lseek(file, place, os.SEEK_DATA)
        except OSError:  # the rest is a hole
            return
        end = min(os.lseek(file, start, os.SEEK_HOLE), size)
        if start >= end:
            return
        yield_turn()
        yield start, end
        place = end


def _write(sink: int, data: bytes, place: int) -> int:
    done = 0
    while done < len(data):
        done += os.pwrite(sink, data[done:], place + done)
    return done


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _free_name(wanted: Path) -> Path:
    """A new name that no file of the agent has. Follows no link."""
    while os.path.lexists(wanted):
        wanted = wanted.with_name(wanted.name + "~")
    return wanted
