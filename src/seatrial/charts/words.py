"""Untrusted names as plain, bounded text: one line, no control characters, no changes of direction."""

from __future__ import annotations

import unicodedata

LONGEST = 200
"""Longer names are cut in tables and in what a mark says."""
_LETTER_WIDTH = 0.6
"""Width of an average letter, by its height. Rather too wide: a text must not leave its room."""
_COMBINING_MOST = 2


def shown(text: str, most: int = LONGEST) -> str:
    """``text`` as one line of at most ``most`` letters."""
    letters: list[str] = []
    combining = 0
    for letter in text[: 4 * most]:
        combining = combining + 1 if unicodedata.combining(letter) else 0
        if combining <= _COMBINING_MOST:
            letters.append(letter if letter.isprintable() else " " if letter.isspace() else "�")
    if len(letters) <= most and len(text) <= 4 * most:
        return "".join(letters)
    return "".join(letters[: most - 1]) + "…"


def fitted(text: str, room: float, size: float = 12.0) -> str:
    """``text``, cut to ``room`` pixels."""
    return shown(text, max(2, int(room / (size * _LETTER_WIDTH))))
