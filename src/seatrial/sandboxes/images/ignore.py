"""``.dockerignore``: the files that are left out of a build context. Pure: the caller walks the files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import cached_property

_PARTS = re.compile(r"\*\*/|\*\*|\[(?P<characters>.[^\]]*)\]|\\(?P<escaped>.)|.", re.DOTALL)
_WILDCARDS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class IgnoreRules:
    """Docker's rules: the last matching line decides, ``!`` includes a file again, ``**`` matches across folders."""

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
        """Whether the file, link or folder at this relative path is left out."""
        left_out = False
        for keeps, pattern in self._rules:
            if keeps == left_out and pattern.match(path):
                left_out = not keeps
        return left_out

    @cached_property
    def brings_back(self) -> bool:
        """Whether an ignored folder may have included files."""
        return any(keeps for keeps, _ in self._rules)


def _normal(pattern: str) -> str:
    """Docker reads every pattern from the root of the context."""
    return posixpath.normpath(f"/{pattern}").lstrip("/")


def _regex(pattern: str) -> str:
    """A pattern matches what it names and everything below it."""
    return f"(?s:{''.join(_piece(part) for part in _PARTS.finditer(pattern))})(?:/|$)"


def _piece(part: re.Match[str]) -> str:
    if part[0] in _WILDCARDS:
        return _WILDCARDS[part[0]]
    if part["characters"]:
        escaped = part["characters"].replace("\\", "\\\\")
        return f"[{escaped}]"
    return re.escape(part["escaped"] or part[0])
