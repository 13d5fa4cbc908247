"""The first difference of two requests, as a person wants to read it: where, and what each of them has there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seatrial.gateway.wire.json_text import JsonObject
from seatrial.gateway.wire.replay import steady_value

_LONGEST = 120
_BEFORE = 30
"""Characters before the first different one that are shown of a long text."""
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    place: str
    """Such as ``messages[3].content``."""
    recorded: str
    asked: str
    """Both without volatile parts, and shortened."""
    depth: int
    """Values before it that are equal. The nearest of several requests has the most."""

    def __str__(self) -> str:
        return f"{self.place or 'the whole'}: recorded {self.recorded}, now {self.asked}"


def first_difference(recorded: JsonObject, asked: JsonObject) -> Difference | None:
    """``None`` if both have the same digest."""
    equal = 0
    for place, one, other in _walk("", steady_value(recorded), steady_value(asked)):
        if one is not _NOTHING and one == other and type(one) is type(other):
            equal += 1
        else:
            return Difference(place, *_shown(one, other), equal)
    return None


def _walk(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of plain values, and of values of different kinds, in order.

    The conversation comes first, because it is usually what differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}, key=lambda name: (name not in _CONVERSATION, name)):
            inner = f"{place}.{name}" if place else name
            yield from _walk(inner, one.get(name, _NOTHING), other.get(name, _NOTHING))
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            yield from _walk(f"{place}[{index}]", _item(one, index), _item(other, index))
    else:
        yield place, one, other


_CONVERSATION = frozenset({"messages", "input", "contents", "system", "instructions", "systemInstruction"})


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _NOTHING


def _shown(one: Any, other: Any) -> tuple[str, str]:
    if isinstance(one, str) and isinstance(other, str):
        same = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        start = max((min(len(one), len(other)) if same is None else same) - _BEFORE, 0)
        return _part(one, start), _part(other, start)
    return _whole(one), _whole(other)


def _part(text: str, start: int) -> str:
    cut = text[start : start + _LONGEST]
    before, after = "…" if start else "", "…" if start + _LONGEST < len(text) else ""
    return f"{before}{json.dumps(cut, ensure_ascii=False)}{after}"


def _whole(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
