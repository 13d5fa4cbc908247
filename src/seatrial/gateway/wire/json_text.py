"""Reads JSON so strictly that two programs cannot read it differently, and changes single values in place.

A request that is read here is read again by a provider's server. What they could read differently is refused: a name
that occurs twice, a name in another case (some servers ignore case), ``NaN``, a text that is not UTF-8. A change
replaces the characters of one value. Everything else keeps its bytes, also the spelling of numbers and escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

DEEPEST = 100
"""Nested values. Requests of agents have about ten."""
MOST_PARTS = 500_000
"""Values in one text. A list of empty objects takes fifty times its bytes in memory."""
_LONGEST_NUMBER = 400
_LARGE = 1024
_STRUCTURE = "{[,"
_NESTED = (dict, list)
"""As a constant: a union would be made anew for each value of a body."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*+")


class BadCall(Exception):
    """Two servers could read the request differently, or its usage cannot be counted."""


@dataclass(frozen=True, slots=True)
class Member:
    """A value of an object, and its place in the text."""

    value: Any
    start: int
    end: int

    @property
    def is_large(self) -> bool:
        return self.end - self.start > _LARGE and isinstance(self.value, (dict, list, str))


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object with the places of its values."""

    text: str
    members: dict[str, Member]
    inside: int
    """The place after the opening brace."""

    def get(self, name: str) -> Any:
        member = self.members.get(name)
        return None if member is None else member.value

    def nested(self, name: str) -> JsonObject:
        """The object that is the value of ``name``."""
        return _members(self.text, self.members[name].start)[0]

    def lighten(self) -> None:
        """Forgets large values, which a change never needs, and keeps the text. A parsed prompt takes as much memory as
        its text, for as long as its call waits. ``nested`` reads them again."""
        for name, member in self.members.items():
            if member.is_large:
                self.members[name] = Member(type(member.value)(), member.start, member.end)

    def replaced(self, name: str, value: str | int) -> Edit:
        """Sets a member, which need not exist yet."""
        written = json.dumps(value)
        member = self.members.get(name)
        if member is not None:
            return Edit(member.start, member.end, written)
        return self.added(name, written)

    def added(self, name: str, written: str) -> Edit:
        comma = "," if self.members else ""
        return Edit(self.inside, self.inside, f"{json.dumps(name)}:{written}{comma}")


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters that replace others."""

    start: int
    end: int
    written: str


def read_object(body: bytes) -> JsonObject:
    """``BadCall`` unless the body is one object in UTF-8."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadCall("The body is not UTF-8.") from None
    if _too_many_parts(text):
        raise BadCall(f"The body has more than {MOST_PARTS:,} values.")
    try:
        found, end = _members(text, _skip(text, 0))
    except RecursionError:
        raise BadCall("The body is nested too deeply.") from None
    except ValueError as problem:  # also that of json, and of numbers with thousands of digits
        raise BadCall(f"The body is not JSON: {str(problem)[:200]}") from None
    if _skip(text, end) != len(text):
        raise BadCall("The body has more than one value.")
    _check_depth([member.value for member in found.members.values() if isinstance(member.value, _NESTED)])
    return found


def edited(text: str, edits: Iterable[Edit]) -> bytes:
    """The text with its changes, which must not overlap."""
    pieces, place = [], 0
    for edit in sorted(edits):
        pieces += [text[place : edit.start], edit.written]
        place = edit.end
    return "".join([*pieces, text[place:]]).encode()


def read_answer_object(data: bytes | str) -> dict[str, Any] | None:
    """What a provider sent. ``None`` if it is not an object; nothing is refused, because it passes unchanged."""
    try:
        text = data if isinstance(data, str) else data.decode()
        if _too_many_parts(text):
            return None
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _members(text: str, start: int) -> tuple[JsonObject, int]:
    """The object that begins at ``start``, and the place after it."""
    if text[start : start + 1] != "{":
        raise BadCall("The body is not a JSON object.")
    members: dict[str, Member] = {}
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        if members:
            place = _skip(text, _expect(text, place, ","))
        if text[place : place + 1] != '"':
            raise BadCall("The body is not JSON: a name is missing.")
        name, place = _DECODER.raw_decode(text, place)
        place = _skip(text, _expect(text, _skip(text, place), ":"))
        value, end = _DECODER.raw_decode(text, place)
        if name in members:
            _twice(name)
        members[name] = Member(value, place, end)
        place = _skip(text, end)
    return JsonObject(text, members, start + 1), place + 1


def _expect(text: str, place: int, mark: str) -> int:
    if text[place : place + 1] != mark:
        raise BadCall(f"The body is not JSON: {mark!r} is missing.")
    return place + 1


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _check_depth(level: list[Any]) -> None:
    for _ in range(DEEPEST):
        parts = (part.values() if isinstance(part, dict) else part for part in level)
        level = [value for part in parts for value in part if isinstance(value, _NESTED)]
        if not level:
            return
    raise BadCall(f"The body is nested more than {DEEPEST} times.")


def _too_many_parts(text: str) -> bool:
    """Counts only what is outside of strings, if there are many in the whole."""
    if len(text) <= MOST_PARTS or sum(map(text.count, _STRUCTURE)) <= MOST_PARTS:
        return False
    bare = _STRING.sub("", text)
    return sum(map(bare.count, _STRUCTURE)) > MOST_PARTS


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                _twice(name)
            seen.add(name)
    return found


def _twice(name: str) -> NoReturn:
    raise BadCall(f"The name {name[:50]!r} occurs twice in one object.")


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise BadCall("A number has too many digits.")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise BadCall(f"{name} is not JSON.")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_int=_whole, parse_constant=_no_constant)
