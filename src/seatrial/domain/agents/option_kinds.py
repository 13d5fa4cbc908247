"""Kinds of option values, and how to check them. Used by ``agent_options``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_VERSION = re.compile(r"[0-9]{1,6}(?:\.[0-9A-Za-z]{1,16}){0,5}(?:[+-][0-9A-Za-z]{1,16}(?:\.[0-9A-Za-z]{1,16}){0,3})?")
_DEEPEST = 12
MOST_VALUES = 2000
"""Maximum values in one nested value; bounds the work that one job can cause."""
LONGEST_FILE = 64 << 10
"""Maximum characters of a file inside an option."""


@dataclass(frozen=True, slots=True)
class Kind:
    says: str
    """What a value must be, as the end of a sentence."""
    accepts: Callable[[Any], bool]
    is_file: bool = False
    """The job contains its content; the runner writes it to a file and gives the agent the path."""


def text(longest: int = 4096) -> Kind:
    return Kind(f"text of at most {longest} characters", lambda value: is_text(value, longest))


def one_of(*choices: str) -> Kind:
    return Kind(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices)


def whole(least: int = 0, most: int = 1_000_000_000) -> Kind:
    return Kind(f"a whole number from {least} to {most}", lambda value: _is_whole(value, least, most))


def number(least: float = -1e6, most: float = 1e9) -> Kind:
    return Kind(f"a number from {least:g} to {most:g}", lambda value: _is_number(value, least, most))


def fields(of: Mapping[str, Kind]) -> Kind:
    """An object with only these fields."""

    def accepts(value: Any) -> bool:
        return isinstance(value, dict) and all(name in of and of[name].accepts(item) for name, item in value.items())

    return Kind(f"an object with fields among {', '.join(sorted(of))}", accepts)


def words(longest: int = 100) -> Kind:
    """A list of strings, or one string."""

    def accepts(value: Any) -> bool:
        return is_text(value, 4096) or (
            isinstance(value, list) and len(value) <= 100 and all(is_text(item, longest) for item in value)
        )

    return Kind("a list of texts", accepts)


def document(longest: int = LONGEST_FILE) -> Kind:
    """An object of plain JSON values, limited in size and depth."""
    return Kind(
        f"a JSON object of at most {longest} characters",
        lambda value: isinstance(value, dict) and _fits(value, longest),
    )


def _is_given_file(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"content"} and _is_content(value["content"])


def _is_content(value: Any) -> bool:
    """A string, or an object that is written as JSON (which is also YAML)."""
    return _fits(value, LONGEST_FILE) if isinstance(value, dict) else is_text(value, LONGEST_FILE)


FLAG = Kind("true or false", lambda value: isinstance(value, bool) or value in ("true", "false"))
VERSION = Kind(
    "a version such as 1.2.3", lambda value: isinstance(value, str) and _VERSION.fullmatch(value) is not None
)
FILE = Kind('the file itself, {"content": "…"}', _is_given_file, is_file=True)
ADDRESS = Kind("an http or https address", lambda value: is_text(value, 2000))
"""``engine.jobs.model_urls`` decides which addresses are allowed."""


def is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and _CONTROL.search(value) is None


def _is_whole(value: Any, least: int, most: int) -> bool:
    if isinstance(value, str) and _NUMBER.fullmatch(value) and "." not in value:
        value = int(value)
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: Any, least: float, most: float) -> bool:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most and math.isfinite(value)


def _fits(value: Any, longest: int) -> bool:
    """Not recursive: the caller controls the depth."""
    left, seen, waiting = longest, 0, [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > MOST_VALUES:
            return False
        if isinstance(item, dict):
            if not all(is_text(name, 200) for name in item):
                return False
            left -= sum(len(name) for name in item)
            waiting += [(inner, depth + 1) for inner in item.values()]
        elif isinstance(item, list):
            waiting += [(inner, depth + 1) for inner in item]
        elif isinstance(item, str):
            if not is_text(item, longest):
                return False
            left -= len(item)
        elif not _is_plain(item):
            return False
        if left < 0:
            return False
    return True


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
