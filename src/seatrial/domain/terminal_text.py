"""What a terminal showed, as text to read: without what moves its cursor and colours its letters.

``engine.run_log`` asks for it, for callers that show a log as it is. Knows how terminals and their recordings are
written, and nothing of trials. Sandboxes write what is read here, so every pattern takes its time once.
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
    """Escape sequences and control characters are left out. Of a line that was written over, the last writing stays,
    as it stood on the screen."""
    seen = _UNSEEN.sub("", text)
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in seen.split("\n"))


def shown(recording: str) -> str:
    """The output in the lines of a recording (asciicast); its header, what was typed, and broken lines are left out."""
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
