"""Splits a stream of server-sent events into whole events, wherever the network cut it."""

from __future__ import annotations

import re

LONGEST_EVENT = 2 * 1024 * 1024
"""A longer event passes unread. The longest have a picture or a whole answer in them."""
_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")


class EventSplitter:
    """Keeps the bytes of an event until it is complete."""

    def __init__(self, longest: int = LONGEST_EVENT) -> None:
        self._longest = longest
        self._held = bytearray()
        self._searched = 0
        self.passing = False
        """Whether the bytes at hand belong to an event that is too long to be held."""

    def feed(self, piece: bytes) -> list[tuple[bytes, bool]]:
        """The next bytes to pass on, in order, and whether each is a whole event."""
        if not self._held and not self.passing and len(piece) <= self._longest and _is_one_event(piece):
            return [(piece, True)]  # the usual case
        self._held += piece
        found: list[tuple[bytes, bool]] = []
        place = 0
        while end := self._end(place):
            found.append((bytes(self._held[place:end]), not self.passing and end - place <= self._longest))
            self.passing = False
            place = self._searched = end
        if place:
            del self._held[:place]
            self._searched = max(self._searched - place, 0)
        if self.passing or len(self._held) > self._longest:
            found.append(self._release())
        return found

    def rest(self) -> bytes:
        """The bytes after the last whole event."""
        rest = bytes(self._held)
        self._held.clear()
        self._searched = 0
        return rest

    def _end(self, place: int) -> int:
        """The place after the event that begins at ``place``; 0 if it is not complete."""
        ended = _END.search(self._held, max(place, self._searched))
        if ended is None:
            self._searched = max(place, len(self._held) - 3)
            return 0
        if ended.end() == len(self._held) and self._held.endswith(b"\r"):
            self._searched = max(place, ended.start())  # the next byte may belong to this line end
            return 0
        return ended.end()

    def _release(self) -> tuple[bytes, bool]:
        """Everything but the bytes that may begin the event's end."""
        self.passing = True
        kept = 3
        part = bytes(self._held[:-kept])
        del self._held[:-kept]
        self._searched = 0
        return part, False


def _is_one_event(piece: bytes) -> bool:
    return piece.endswith(b"\n\n") and piece.find(b"\n\n") == len(piece) - 2 and b"\r" not in piece


def event_data(event: bytes) -> tuple[str, bytes]:
    """The event's name and its data. Both are empty if it has none, such as a comment."""
    if event.startswith(b"data: ") and event.endswith(b"\n\n") and event.count(b"\n") == 2 and b"\r" not in event:
        return "", event[6:-2]  # the usual case
    name, data = b"", []
    for line in _LINE.split(event):
        if line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            name = line[6:].strip()
    return name.decode("latin-1"), b"\n".join(data)


def event_text(data: str, name: str = "") -> bytes:
    """An event of ours."""
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()
