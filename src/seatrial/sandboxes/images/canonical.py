"""Writes instructions in a form that all builders read alike. ``rewrite`` decides what is written.

Commands and file lists are JSON, values are in single quotes, and lines have no variables and no other flags.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence

from seatrial.errors import ImageFault

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,*-]*")


def json_list(words: Sequence[str]) -> str:
    """Plain ASCII. ``<`` is escaped, so that no builder reads a here-document."""
    for word in words:
        if "\0" in word or any(unicodedata.category(char) == "Cs" for char in word):
            raise ImageFault("The Dockerfile has a command with a character that no argument of a process can have.")
    return json.dumps(list(words)).replace("<", "\\u003c")


def command(keyword: str, argv: Sequence[str]) -> str:
    return f"{keyword} {json_list(argv)}"


def assignment(keyword: str, name: str, value: str) -> str:
    """``ENV``, ``ARG`` and ``LABEL``."""
    return f"{keyword} {name}={quoted(value, always=True)}"


def quoted(value: str, *, always: bool = False) -> str:
    """One literal word. In single quotes, because builders disagree about a backslash in double ones."""
    if any(unicodedata.category(char) in ("Cc", "Cs") and char != "\t" for char in value):
        raise ImageFault(f"The value {value[:40]!r} in the Dockerfile has a control character.")
    if not always and value and _PLAIN.fullmatch(value) and not value.startswith("-"):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def copying(keyword: str, flags: Sequence[tuple[str, str]], words: Iterable[str]) -> str:
    """``COPY``, ``ADD`` and ``VOLUME``. Builders expand each word once more, so it is quoted inside the JSON."""
    options = [f"--{name}={value}" for name, value in flags]
    return " ".join([keyword, *options, json_list([quoted(word) for word in words])])
