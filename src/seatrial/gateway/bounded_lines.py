"""A file of lines with a largest size: a line that does not fit is not written, and neither is any later one."""

from __future__ import annotations

import os
from pathlib import Path

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class BoundedLines:
    """The file is created with its first line. Writes are short and go to the page cache, so they run in the loop."""

    def __init__(self, path: Path, most_bytes: int, first: bytes = b"") -> None:
        self._path = path
        self._left = most_bytes
        self._first = first
        self._file: int | None = None

    def write(self, line: bytes) -> bool:
        """``False`` if the line did not fit. A full disk counts as a full file, because it must not end a call."""
        if len(line) > self._left:
            self.close()
            return False
        self._left -= len(line)
        try:
            if self._file is None:
                self._file = os.open(self._path, _APPEND, 0o644)
                line = self._first + line
            whole = os.write(self._file, line) == len(line)
        except OSError:
            whole = False
        if not whole:
            self.close()
        return whole

    def close(self) -> None:
        """Nothing is written afterwards."""
        self._left = -1
        if self._file is not None:
            os.close(self._file)
            self._file = None
