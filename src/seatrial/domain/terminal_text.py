"""Converts terminal output to plain text: removes escape sequences.

Used by the engine's run logs. Input comes from sandboxes, so every pattern runs in linear time.
"""

from __future__ import annotations

import json
import re

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
