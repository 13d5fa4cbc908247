"""A second, simple reading of what the builder is given, which shares nothing with the code that wrote it.

Every line is one of a few shapes. A flag that is not in the shape, a variable, a line that goes on in the next one or a
character that a parser could take for a blank makes it fail.
"""

from __future__ import annotations

import json
import re

_VALUE = r"'(?:[^']|'\\'')*'"
_LIST = r"(\[.*\])"
_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        r"FROM (?:scratch|stage-\d+|[a-zA-Z0-9.:-]+/[a-z0-9._/-]+(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?) AS stage-\d+",
        rf"(?:RUN|CMD|ENTRYPOINT|SHELL|VOLUME) {_LIST}",
        rf"HEALTHCHECK(?: --(?:interval|timeout|start-period|retries)=[0-9a-z.]+)* CMD {_LIST}",
        r"HEALTHCHECK NONE",
        rf"COPY(?: --(?:from|chown|chmod)=[\w.:/@-]+)* {_LIST}",
        rf"ADD(?: --(?:chown|chmod)=[\w.:-]+)* {_LIST}",
        rf"(?:ENV|ARG|LABEL) [\w./:-]+={_VALUE}",
        r"ARG [\w.-]+",
        rf"WORKDIR (?:[\w./:@%+=,*-]+|{_VALUE})",
        r"USER [\w.:-]+",
        r"EXPOSE(?: [0-9]+(?:-[0-9]+)?(?:/(?:tcp|udp|sctp))?)+",
        r"STOPSIGNAL [A-Z0-9+-]+",
    )
)


def is_canonical(text: str) -> bool:
    return text.endswith("\n") and all(_is_line(line) for line in text[:-1].split("\n"))


def _is_line(line: str) -> bool:
    if any(ord(char) < 32 and char != "\t" for char in line) or line != line.strip() or line.endswith("\\"):
        return False
    match = next((found for shape in _SHAPES if (found := shape.fullmatch(line))), None)
    if match is None:
        return False
    if not match.groups():
        return True
    words = json.loads(match[1])
    return match[1].isascii() and "<" not in match[1] and all(isinstance(word, str) for word in words)
