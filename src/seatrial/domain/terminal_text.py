"""Converts terminal output to readable text, and makes untrusted text safe for a terminal.

``readable`` and ``shown`` are for ``engine.trials.run_log``; ``harmless`` is for commands and logs. The text comes from
sandboxes, so every pattern takes linear time.
"""

from __future__ import annotations

import json
import re
import unicodedata

_INVISIBLE = re.compile(
    "\x1b(?:"
    r"\[[0-?]*+[ -/]*+[@-~]"  # colours, cursor, modes
    "|[\\]PX^_][^\x07\x1b]{0,4096}+(?:\x07|\x1b\\\\)"  # titles, links and other strings with their end
    r"|[ -/]*+[0-~]"  # all others
    ")|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def readable(text: str) -> str:
    """Removes escape sequences and control characters. Keeps the last version of an overwritten line."""
    seen = _INVISIBLE.sub("", text)
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in seen.split("\n"))


_NOT_PLAIN = re.compile("[^\n\t -~]")
"""Characters other than printable ASCII, tabs and line ends."""


def harmless(text: str) -> str:
    """Replaces invisible characters by ``\\x1b`` and the like. Keeps line ends and tabs."""
    return _NOT_PLAIN.sub(lambda found: found[0] if is_seen(found[0]) else _numbered(found[0]), text)


def is_seen(letter: str) -> bool:
    """Whether a character is visible or a space. Not: controls, direction marks, surrogates, private characters."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _numbered(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def shown(recording: str) -> str:
    """The output in a recording (asciicast), without its header, input and broken lines."""
    return "".join(map(_output, recording.split("\n")))


def _output(line: str) -> str:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    match event:
        case [_, "o", str(text)]:
            return text
    return ""
