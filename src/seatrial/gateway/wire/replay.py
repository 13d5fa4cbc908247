"""The part of a request that is the same when a trial runs again, and its digest.

Left out are names of sessions and users, and everything that says when a request was made: dates, times of day, seconds
since 1970, durations and random ids in texts. Ids of tool calls are numbered in their order, because some agents invent
them. Two requests of one trial may become equal by that, so a record is read in its order.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from seatrial.gateway.wire.json_text import JsonObject

_VOLATILE = frozenset(
    {
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata", "labels", "session_id"),
        *("stream_options", "service_tier", "store", "user_profile_id", "workspace_id", "diagnostics"),
    }
)
"""Top-level names of requests that do not say what is asked."""
_IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id", "item_id", "previous_response_id"})
# Each pattern begins with a set of characters, which the engine searches for quickly. What stands before the match is
# looked at only after its first character.
_AFTER_NO_WORD = r"(?<![0-9A-Za-z.].)"
_NUMBERS = re.compile(
    rf"""
    [0-9]{_AFTER_NO_WORD}(?:
      (?P<date>[09]\d\d[-/.](?:0[1-9]|1[0-2])[-/.](?:0[1-9]|[12]\d|3[01])
        (?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?:\ ?(?:Z|[+-][01]\d:?[0-5]\d))?)?)
    | (?P<clock>\d?:[0-5]\d(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?:\ ?[AP]M)?(?:\ (?:UTC|GMT|CET|CEST))?)
    | (?P<epoch>(?<=1)[6-9]\d{{8}}(?:\d{{3}}|\.\d{{1,9}})?)
    | (?P<took>\d{{0,5}}(?:\.\d{{1,9}})?\ ?(?:ms|s|secs?|seconds?|milliseconds?))
    )(?![0-9A-Za-z])
    """,
    re.VERBOSE,
)
_WORDS = re.compile(
    rf"""
    [JFMASONDTW]{_AFTER_NO_WORD}(?:
      (?P<date>(?:an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec)[a-z]{{0,6}}\.?\ +\d{{1,2}}(?:st|nd|rd|th)?(?:,?\ +20\d\d)?)
    | (?P<day>(?:on|ue|ed|hu|ri|at|un)[a-z]{{0,6}}(?=[ ,]))
    )(?![0-9A-Za-z])
    """,
    re.VERBOSE,
)
_UUID_TAIL = re.compile(r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9A-Za-z])")
_UUID_HEAD = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}")


def digest_of(body: JsonObject) -> str:
    return hashlib.sha256(json.dumps(_steady_part(body), sort_keys=True).encode()).hexdigest()


def steady_text(body: JsonObject) -> str:
    """What the digest is made of, one value per line, so that two can be compared for their first difference."""
    return json.dumps(_steady_part(body), sort_keys=True, indent=0)


def _steady_part(body: JsonObject) -> dict[str, Any]:
    numbers: dict[str, str] = {}
    kept = {name: member.value for name, member in body.members.items() if name not in _VOLATILE}
    return {name: _steady(value, numbers) for name, value in kept.items()}


def _steady(value: Any, numbers: dict[str, str]) -> Any:
    """``read_object`` bounds the depth."""
    if isinstance(value, str):
        return _steady_string(value)
    if isinstance(value, list):
        return [_steady(each, numbers) for each in value]
    if isinstance(value, dict):
        return {
            name: _number(inner, numbers) if name in _IDS and isinstance(inner, str) else _steady(inner, numbers)
            for name, inner in value.items()
        }
    return value


def _steady_string(text: str) -> str:
    if text.isalpha():
        return text
    return _WORDS.sub(_kind, _NUMBERS.sub(_kind, _without_uuids(text)))


def _kind(found: re.Match[str]) -> str:
    return f"<{found.lastgroup}>"


def _without_uuids(text: str) -> str:
    """Searches for their last four parts: a hyphen is rare."""
    pieces, place = [], 0
    for tail in _UUID_TAIL.finditer(text):
        head = _UUID_HEAD.match(text, max(tail.start() - 8, place))
        if head is not None and head.end() == tail.start():
            pieces += [text[place : head.start()], "<uuid>"]
            place = tail.end()
    return "".join([*pieces, text[place:]]) if pieces else text


def _number(name: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(name, f"<id {len(numbers) + 1}>")
