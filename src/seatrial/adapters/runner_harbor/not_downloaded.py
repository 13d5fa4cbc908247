"""Hears what a sandbox says it did not download, so that the result can tell it.

A sandbox says so in the trial's log, one line for each: Harbor's calls have no other way back.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import override

from seatrial.domain.result import FileLeftOut, FilesLeftOut

_SAID = "Not downloaded from %s: %s"
_MORE = re.compile(r"and (\d{1,12}) more \((.*)\)", re.DOTALL)
_MOST_EXAMPLES = 20
_LONGEST = 300


class NotDownloaded(logging.Handler):
    """Listens to the logger of one trial."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._count = 0
        self._examples: list[FileLeftOut] = []

    @contextmanager
    def listening(self, logger: logging.Logger) -> Iterator[None]:
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.msg != _SAID or not isinstance(record.args, tuple) or len(record.args) != 2:
            return
        folder, line = map(str, record.args)
        if more := _MORE.fullmatch(line):
            self._add(folder, more[2], int(more[1]))
        else:
            place, _, reason = line.partition(": ")
            self._add(f"{folder}/{place}", reason or "It was left out.", 1)

    def told(self) -> FilesLeftOut | None:
        return FilesLeftOut(count=self._count, examples=tuple(self._examples)) if self._count else None

    def _add(self, path: str, reason: str, count: int) -> None:
        self._count += count
        if len(self._examples) < _MOST_EXAMPLES:
            self._examples.append(FileLeftOut(path=_text(path), reason=_text(reason)))


def _text(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_LONGEST])
