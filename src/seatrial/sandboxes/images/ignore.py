"""``.dockerignore``: which files of a build context stay out of it. Pure; the caller walks the files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property


class IgnoreRules:
    """Docker's rules: the last line that matches decides, ``!`` brings a file back, ``**`` spans folders."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for line in lines:
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            keeps = text.startswith("!")
            pattern = _normal(text[1:].strip() if keeps else text)
            if pattern:
                self._rules.append((keeps, re.compile(_regex(pattern))))

    def ignores(self, path: str) -> bool:
        """Whether a file, a link or a folder at this path (relative, ``/`` between names) is left out."""
        left_out = False
        for keeps, pattern in self._rules:
            if keeps == left_out and pattern.match(path):
                left_out = not keeps
        return left_out

    @cached_property
    def brings_back(self) -> bool:
        """Whether an ignored folder has to be looked into all the same."""
        return any(keeps for keeps, _ in self._rules)


def _normal(pattern: str) -> str:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _regex(pattern: str) -> str:
    """A pattern covers what it names and everything below it."""
    out, index = "", 0
    while index < len(pattern):
        char = pattern[index]
        if pattern.startswith("**/", index):
            out, index = out + "(?:[^/]+/)*", index + 3
        elif pattern.startswith("**", index):
            out, index = out + ".*", index + 2
        elif char == "*":
            out, index = out + "[^/]*", index + 1
        elif char == "?":
            out, index = out + "[^/]", index + 1
        elif char == "[" and "]" in pattern[index + 2 :]:
            end = pattern.index("]", index + 2)
            inside = pattern[index + 1 : end].replace("\\", "\\\\")
            out, index = out + f"[{inside}]", end + 1
        elif char == "\\" and index + 1 < len(pattern):
            out, index = out + re.escape(pattern[index + 1]), index + 2
        else:
            out, index = out + re.escape(char), index + 1
    return f"(?s:{out})(?:/|$)"
