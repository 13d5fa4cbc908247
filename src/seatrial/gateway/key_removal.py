"""Takes the key of a call out of what its provider answers.

A proxy may repeat what it was sent, in its error or in a header for debugging. The sandbox must not see it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

from seatrial.engine.trials.redaction import Redaction
from seatrial.gateway.head import Fields


class KeyRemoval:
    """Removes the key that is in the headers of a route."""

    def __init__(self, values: tuple[str, ...]) -> None:
        self._redaction = Redaction(spelling for value in values for spelling in _spellings(value))

    def from_text(self, text: str) -> str:
        return self._redaction.clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def from_fields(self, fields: Fields) -> Fields:
        """Leaves out headers with the key in their name."""
        return tuple((name, self.from_text(value)) for name, value in fields if self.from_text(name) == name)

    def from_body(self, body: bytes, *, is_cut: bool) -> bytes:
        """``is_cut``: the body is not complete, so it may end within a key."""
        return self._redaction.clean(body[: self._redaction.safe_end(body)] if is_cut else body)


@lru_cache(maxsize=256)
def key_removal(values: tuple[str, ...]) -> KeyRemoval:
    """The same for all calls of a route."""
    return KeyRemoval(values)


def _spellings(value: str) -> Iterator[str]:
    """A key as it is, and as programs write it: in a header's name, in JSON, in an address, or coded."""
    for text in {value, value.removeprefix("Bearer ")}:
        yield from (text, text.lower(), json.dumps(text)[1:-1], quote(text, safe=""))
        yield b64encode(text.encode()).decode().rstrip("=")
