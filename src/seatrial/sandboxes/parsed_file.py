"""Files of the machine that may be missing or may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class ParsedFile[T]:
    """The parsed content of a file. A missing file counts as an empty one."""

    def __init__(self, path: Path, parse: Callable[[str], T]) -> None:
        self._path = path
        self._parse = parse
        self._stamp: tuple[int, int, int] | None = None
        self._value = parse("")

    @property
    def value(self) -> T:
        try:
            about = self._path.stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if stamp != self._stamp:
                self._value, self._stamp = self._parse(self._path.read_text(errors="replace")), stamp
        except FileNotFoundError:
            self._value, self._stamp = self._parse(""), None
        return self._value


def read_or_empty(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
