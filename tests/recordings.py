"""Reads asciicast v2 files as a player would. Any line that is not valid fails the test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CastEvent:
    at: float
    kind: str
    data: str


def width_of(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        header = json.loads(file.readline())
    assert header["version"] == 2
    return int(header["width"])


def events_of(path: Path) -> list[CastEvent]:
    assert width_of(path) > 0
    with path.open(encoding="utf-8") as file:
        events = [CastEvent(*json.loads(line)) for line in list(file)[1:]]
    assert [event.at for event in events] == sorted(event.at for event in events)
    return events
