"""Writes instructions in the one spelling that every builder reads alike.

Commands and file lists are JSON, values are in single quotes, nothing is left to expand, and a line has no flag but
those written here. ``rewrite`` decides what is written.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from seatrial.errors import ImageFault

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,*-]*")


def json_list(words: Sequence[str]) -> str:
    """Plain ASCII; ``<`` is spelled out so that nobody takes it for a here-document."""
    for word in words:
        if "\0" in word or any(unicodedata.category(char) == "Cs" for char in word):
            raise ImageFault("The Dockerfile has a command with a character that no process can be given.")
    return json.dumps(list(words)).replace("<", "\\u003c")


def command(keyword: str, argv: Sequence[str]) -> str:
    return f"{keyword} {json_list(argv)}"


def assignment(keyword: str, name: str, value: str) -> str:
    """``ENV``, ``ARG`` and ``LABEL``."""
    return f"{keyword} {name}={quoted(value, always=True)}"


def quoted(value: str, *, always: bool = False) -> str:
    """One word that stands for itself. Single quotes: builders disagree about a backslash in double ones."""
    if any(unicodedata.category(char) in ("Cc", "Cs") and char != "\t" for char in value):
        raise ImageFault(f"The value {value[:40]!r} in the Dockerfile has a control character.")
    if not always and value and _PLAIN.fullmatch(value) and not value.startswith("-"):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def copying(keyword: str, flags: Sequence[tuple[str, str]], words: Sequence[str]) -> str:
    """``COPY`` and ``ADD``: builders expand each word once more, so it is quoted inside of the JSON."""
    options = [f"--{name}={value}" for name, value in flags]
    return " ".join([keyword, *options, json_list([quoted(word) for word in words])])
