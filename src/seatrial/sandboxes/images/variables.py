"""``ARG`` and ``ENV`` of a Dockerfile as far as they are known before it is built. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.sandboxes.images.dockerfile import shell_words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Scope:
    """The variables at one place of a Dockerfile; ``ENV`` wins over ``ARG``, as in Docker."""

    args: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        return {**self.args, **self.env}

    def set_env(self, rest: str) -> None:
        for name, value in assignments(rest):
            self.env[name] = expand(value, self.values)


def assignments(rest: str) -> list[tuple[str, str]]:
    """``NAME=value …`` or the old ``NAME value``; values keep their quotes."""
    words = shell_words(rest)
    if words and "=" not in words[0]:
        name, _, value = rest.strip().partition(" ")
        return [(name, value.strip())]
    pairs = (word.partition("=") for word in words)
    return [(name, value) for name, _, value in pairs]


def expand(text: str, values: Mapping[str, str], *, quotes: bool = True) -> str:
    """``$NAME``, ``${NAME}``, ``${NAME:-word}``, ``${NAME:+word}``. Without ``quotes``, quotes are plain characters."""
    out, index, quote = "", 0, ""
    while index < len(text):
        char = text[index]
        if char == "\\" and quote != "'" and index + 1 < len(text):
            out, index = out + text[index + 1], index + 2
        elif quotes and char in "\"'" and quote in ("", char):
            quote, index = ("" if quote else char), index + 1
        elif char == "$" and quote != "'":
            value, index = _variable(text, index, values)
            out += value
        else:
            out, index = out + char, index + 1
    return out


def _variable(text: str, index: int, values: Mapping[str, str]) -> tuple[str, int]:
    if text.startswith("${", index):
        end = _closing(text, index + 2)
        if end < 0:
            return text[index], index + 1
        return _braced(text[index + 2 : end], values), end + 1
    match = _NAME.match(text, index + 1)
    if match is None:
        return "$", index + 1
    return values.get(match[0], ""), match.end()


def _closing(text: str, index: int) -> int:
    depth = 1
    while index < len(text):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
        index += 1
    return -1


def _braced(inside: str, values: Mapping[str, str]) -> str:
    match = _NAME.match(inside)
    if match is None:
        return ""
    name, rest = match[0], inside[match.end() :]
    value = values.get(name)
    filled = bool(value) if rest.startswith(":") else value is not None
    operator, word = rest.lstrip(":")[:1], rest.lstrip(":")[1:]
    if operator == "-":
        return value if filled and value is not None else expand(word, values)
    if operator == "+":
        return expand(word, values) if filled else ""
    return value or ""
