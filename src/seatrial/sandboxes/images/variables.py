"""``ARG`` and ``ENV`` of a Dockerfile. All variables are expanded here, so that the builder sees none. Pure.

Docker has a grammar of its own here. The operators ``:-``, ``:+`` and ``:?`` and the braces are those of
``domain/substitution``, and are taken from there. Only here, quotes and escapes are removed, ``$$`` is a variable and
not a plain ``$``, ``$1`` and ``$@`` are variables too, and values can be trimmed and replaced (``#``, ``%``, ``/``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.domain.substitution import chosen, closing_brace
from seatrial.errors import ImageFault
from seatrial.sandboxes.images.dockerfile import shell_words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?\-$!]")
_DEEPEST = 20
_LONGEST = 4 << 20
_LONGEST_VALUE = 128 << 10
"""Of one variable. Lines that double a value would otherwise fill the memory."""
_LONGEST_TRIMMED = 4096
_MOST_STARS = 4


@dataclass(slots=True)
class Scope:
    """The variables at one place of a Dockerfile. ``ENV`` overrides ``ARG``, as in Docker."""

    args: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    escape: str = "\\"

    def expand(self, text: str, *, quotes: bool = True) -> str:
        """Removes quotes and escapes and replaces variables, by Docker's rules. ``ImageFault`` for anything else.

        Without ``quotes``, quotes are plain characters, as in a here-document."""
        return _Expander(text, {**self.args, **self.env}, self.escape, quotes).expanded()

    def value(self, text: str) -> str:
        """The same for the value of a variable."""
        value = self.expand(text)
        if len(value) > _LONGEST_VALUE:
            raise ImageFault(f"A variable of the Dockerfile is longer than {_LONGEST_VALUE} characters.")
        return value


def assignments(rest: str, escape: str = "\\") -> list[tuple[str, str]]:
    """``NAME=value …`` or the old ``NAME value``; values keep their quotes."""
    words = shell_words(rest, escape)
    if words and "=" not in words[0]:
        name, _, value = rest.strip().replace("\t", " ", 1).partition(" ")
        return [(name, value.strip())]
    pairs = (word.partition("=") for word in words)
    return [(name, value) for name, _, value in pairs]


class _Expander:
    def __init__(self, text: str, values: Mapping[str, str], escape: str, quotes: bool, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise ImageFault(f"{text[:40]!r} in the Dockerfile nests variables too deeply.")
        self._text = text
        self._values = values
        self._escape = escape
        self._quotes = quotes
        self._depth = depth
        self._at = 0

    def expanded(self, end: str = "") -> str:
        """The text from here to the closing quote ``end``, or to the end of the text."""
        out = ""
        while self._at < len(self._text):
            char, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
            if char == end:
                self._at += 1
                return out
            # In double quotes the escape character works only in front of these characters.
            if char == self._escape and (not end or following in ('"', "$", self._escape)):
                out += following
                self._at += 2
            elif char == "'" and self._quotes and not end:
                out += self._single()
            elif char == '"' and self._quotes and not end:
                self._at += 1
                out += self.expanded('"')
            elif char == "$":
                out += self._dollar()
            else:
                out += char
                self._at += 1
            if len(out) > _LONGEST:
                raise ImageFault(f"A value in the Dockerfile is longer than {_LONGEST} characters.")
        if end:
            raise self._unclosed(end)
        return out

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise self._unclosed("'")
        inside, self._at = self._text[self._at + 1 : end], end + 1
        return inside

    def _dollar(self) -> str:
        if self._text.startswith("${", self._at):
            end = self._closing()
            inside, self._at = self._text[self._at + 2 : end], end + 1
            return self._braced(inside)
        match = _NAME.match(self._text, self._at + 1)
        self._at = match.end() if match else self._at + 1
        return self._values.get(match[0], "") if match else "$"

    def _closing(self) -> int:
        end = closing_brace(self._text, self._at + 1)
        if end is None:
            raise self._unclosed("{")
        return end

    def _braced(self, inside: str) -> str:
        match = _NAME.match(inside)
        if match is None:
            raise self._not_understood(inside)
        value, rest = self._values.get(match[0]), inside[match.end() :]
        if not rest:
            return value or ""
        found = re.match(r":?[-+?]|##?|%%?|//?", rest)
        if found is None:
            raise self._not_understood(inside)
        word = _Expander(rest[found.end() :], self._values, self._escape, True, self._depth + 1).expanded()
        if found[0][0] in "#%/":
            return _trimmed(found[0], value or "", word)
        result = chosen(found[0], value, word)
        if result is None:
            raise ImageFault(f"The Dockerfile needs {match[0]}: {word or 'it is not set'}.")
        return result

    def _unclosed(self, what: str) -> ImageFault:
        return ImageFault(f"{self._text[:60]!r} in the Dockerfile has a {what} that never ends.")

    def _not_understood(self, inside: str) -> ImageFault:
        return ImageFault(f"{'${' + inside[:40] + '}'!r} in the Dockerfile is not understood.")


def _trimmed(operator: str, value: str, word: str) -> str:
    """``${x#glob}``, ``${x%glob}`` and ``${x/glob/text}``. Refuses what would take long to match."""
    if len(value) > _LONGEST_TRIMMED or word.count("*") > _MOST_STARS:
        raise ImageFault(f"{word[:40]!r} in the Dockerfile is too long to be matched.")
    if operator[0] == "/":
        glob, _, into = word.partition("/")
        return re.sub(_glob(glob), lambda _: into, value, count=0 if operator == "//" else 1)
    lengths, front, pattern = range(len(value) + 1), operator[0] == "#", re.compile(_glob(word))
    for size in reversed(lengths) if len(operator) == 2 else lengths:
        part = value[:size] if front else value[len(value) - size :]
        if pattern.fullmatch(part):
            return value[size:] if front else value[: len(value) - size]
    return value


def _glob(glob: str) -> str:
    pieces = {"*": ".*", "?": "."}
    return "(?s:" + "".join(pieces.get(char, re.escape(char)) for char in glob) + ")"
