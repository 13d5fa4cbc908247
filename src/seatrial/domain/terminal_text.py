"""What a terminal showed, as text to read: without what moves its cursor and colours its letters. And the other way:
foreign text that a terminal may be given.

``engine.run_log`` asks for the first, for callers that show a log as it is; commands and logs ask for the second. Knows
how terminals and their recordings are written, and nothing of trials. Sandboxes write what is read here, so every
pattern takes its time once.
"""

from __future__ import annotations

import json
import re
import unicodedata

_UNSEEN = re.compile(
    "\x1b(?:"
    r"\[[0-?]*+[ -/]*+[@-~]"  # colours, the cursor, modes
    "|[\\]PX^_][^\x07\x1b]{0,4096}+(?:\x07|\x1b\\\\)"  # titles, links and other strings, up to their end
    r"|[ -/]*+[0-~]"  # all others
    ")|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def readable(text: str) -> str:
    """Removes escape sequences and control characters. Of an overwritten line the last version stays."""
    seen = _UNSEEN.sub("", text)
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in seen.split("\n"))


_PERHAPS = re.compile("[^\n\t -~]")
"""All that is not plain ASCII is looked at."""


def harmless(text: str) -> str:
    """The text with ``\\x1b`` and the like in place of what is not meant to be seen. Lines and tabs stay."""
    return _PERHAPS.sub(lambda found: found[0] if is_seen(found[0]) else _numbered(found[0]), text)


def is_seen(letter: str) -> bool:
    """Letters, signs and spaces; not controls, marks of direction, halves of a character or private ones."""
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
