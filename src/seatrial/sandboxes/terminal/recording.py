"""Terminal recordings on the host's side: asciicast v2 files that came out of a sandbox, and are not to be trusted.

The runner calls ``mend`` on what it downloaded; the CLI and the page read with ``read``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput

_LONGEST_LINE = 16 << 20


class Header(Frozen):
    width: int
    height: int
    timestamp: int | None = None


class CastEvent(Frozen):
    at: float
    """Seconds since the recording began."""
    kind: str
    """``o`` shown, ``i`` typed, ``r`` resized, ``m`` a mark."""
    data: str


def mend(path: Path) -> bool:
    """Cuts off a last line that a kill tore; says whether there was one. The file is then valid to its end."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        end = size
        while end > 0:
            start = max(end - 65536, 0)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end == size:
            return False
        file.truncate(end)
        return True


def header(path: Path) -> Header:
    with path.open(encoding="utf-8", errors="replace") as file:
        return _header(path, file.readline(_LONGEST_LINE))


def read(path: Path) -> Iterator[CastEvent]:
    """The events in order. Raises ``InvalidInput`` with the line that is no event."""
    with path.open(encoding="utf-8", errors="replace") as file:
        _header(path, file.readline(_LONGEST_LINE))
        before = 0.0
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), ""), start=2):
            try:
                at, kind, data = json.loads(line)
                event = CastEvent(at=at, kind=kind, data=data)
            except (ValueError, TypeError, RecursionError) as error:
                raise InvalidInput(f"{path.name}: line {number} is not an event of a recording.") from error
            if not before <= event.at < float("inf"):
                raise InvalidInput(f"{path.name}: line {number} is not later than the line before it.")
            before = event.at
            yield event


def _header(path: Path, line: str) -> Header:
    try:
        found = json.loads(line)
        if found["version"] != 2:
            raise ValueError(found["version"])
        return Header(width=found["width"], height=found["height"], timestamp=found.get("timestamp"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{path.name} is not an asciicast v2 recording.") from error
