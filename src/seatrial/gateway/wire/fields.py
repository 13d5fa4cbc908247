"""Reads single values: strictly from requests, which can be refused, and leniently from answers, which pass anyway."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from seatrial.gateway.wire.json_text import BadCall, JsonObject

LARGEST = 2**40
"""More tokens than any model has. Larger numbers would overflow in a database."""
_LONGEST_WORD = 200
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")


def check_names(body: JsonObject, known: Iterable[str]) -> None:
    """``BadCall`` if a name differs from one that matters only by its case. Some servers would read it as that one."""
    folded = {name.casefold(): name for name in known}
    for name in body.members:
        meant = folded.get(name.casefold())
        if meant is not None and meant != name:
            raise BadCall(f"The name {name[:50]!r} is written {meant!r}.")


def model_name(value: Any) -> str:
    if not isinstance(value, str) or not _MODEL.fullmatch(value) or ".." in value or "//" in value:
        raise BadCall("The request names no model, or not by a plain name.")
    return value


def refuse_stored(body: JsonObject, *names: str) -> None:
    """What is stored at a provider, such as a prompt with its settings, may name another model."""
    for name in names:
        if body.get(name) is not None:
            raise BadCall(f"{name!r} is stored at the provider and may name another model. Send what it contains.")


def model_names(value: Any) -> tuple[str, ...]:
    """A list of models, or of objects with a model each."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadCall("A list of models is not a list.")
    return tuple(model_name(each.get("model") if isinstance(each, dict) else each) for each in value)


def flag(body: JsonObject, name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadCall(f"{name!r} is neither true nor false.")
    return bool(value)


def limit(body: JsonObject, name: str) -> int | None:
    """A length of the answer. Servers of local models read a negative one as no limit."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadCall(f"{name!r} is not a whole number.")
    return None if value < 0 else min(value, LARGEST)


def answers(body: JsonObject, name: str) -> int:
    """How many answers are asked for."""
    value = body.get(name)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 128:
        raise BadCall(f"{name!r} is not a number from 1 to 128.")
    return value


def part(body: JsonObject, name: str) -> JsonObject | None:
    """An object in the object."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadCall(f"{name!r} is not an object.")
    return body.nested(name)


def asked_ways(body: JsonObject, *names: str) -> tuple[str, ...]:
    """Service tier, speed and region, as far as they are asked for."""
    found = []
    for name in names:
        value = body.get(name)
        if value is not None and not isinstance(value, str):
            raise BadCall(f"{name!r} is not a text.")
        if value:
            found.append(value[:_LONGEST_WORD])
    return tuple(found)


def tools(body: JsonObject) -> list[dict[str, Any]]:
    value = body.get("tools")
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise BadCall("'tools' is not a list of objects.")
    return value


def tool_models(tools: list[dict[str, Any]]) -> tuple[str, ...]:
    """Models that tools of the provider use."""
    return tuple(model_name(tool["model"]) for tool in tools if tool.get("model") is not None)


def items(value: Any) -> list[dict[str, Any]]:
    """The objects in a list of an answer."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def inner(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def count(value: Any) -> int | None:
    """A number of tokens in an answer."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def total(*values: Any) -> int | None:
    """The sum of those numbers of tokens that are reported."""
    told = [number for value in values if (number := count(value)) is not None]
    return sum(told) if told else None


def dollars(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST and math.isfinite(value) else None


def told_cost(usage: dict[str, Any]) -> float | None:
    """OpenRouter's figure. With the user's own key at the maker, it is only the fee on top of the maker's price."""
    cost = dollars(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    return cost + (dollars(inner(usage, "cost_details").get("upstream_inference_cost")) or 0.0)


def word(value: Any) -> str | None:
    """A short text of an answer, such as a name or a reason."""
    return value[:_LONGEST_WORD] if isinstance(value, str) and value else None


def told_ways(*values: Any) -> tuple[str, ...]:
    return tuple(found for value in values if (found := word(value)) is not None)


def error_text(value: Any) -> str | None:
    """The message of an error, in whichever of the providers' shapes."""
    if isinstance(value, dict):
        code = value.get("code") or value.get("type") or value.get("status")
        message = value.get("message")
        value = ": ".join(str(each) for each in (code, message) if isinstance(each, str | int) and each)
    return " ".join(value.split())[:500] or None if isinstance(value, str) else None


def short(content: dict[str, Any], name: str) -> bool:
    """Whether a value of an answer is a word or a number, and so may be repeated."""
    value = content.get(name)
    if isinstance(value, str):
        return len(value) <= _LONGEST_WORD
    return isinstance(value, int | float) and abs(value) <= LARGEST  # not NaN, which is no JSON
