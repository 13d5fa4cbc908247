"""The part of a request that is the same when a trial runs again, and its digest.

Left out are names of sessions and users, and everything that says when and where a request was made: dates, times of
day, seconds since 1970, durations, random ids, and the sandbox's name in the prompt of a shell (``root@NAME:/app#``).
Ids of tool calls are numbered in their order, because some agents invent them. Two requests of one trial may become
equal by that, so a record is read in its order.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from seatrial.gateway.wire.json_text import JsonObject

DIGEST_RULES = 1
"""Raise it with every change of what is left out: records of other rules get new digests when they are read."""
_VOLATILE = frozenset(
    {
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata", "labels", "session_id"),
        *("stream_options", "service_tier", "store", "user_profile_id", "workspace_id", "diagnostics"),
    }
)
"""Top-level names of requests that do not say what is asked."""
_ID_NAMES = ("id", "tool_call_id", "tool_use_id", "call_id", "item_id", "previous_response_id")
_ID = re.compile(rf'"(?P<name>{"|".join(_ID_NAMES)})": "(?P<id>[^"\\]{{1,200}})"')
# The patterns begin with a character or a set of them, which the engine searches for quickly. What stands before a
# match is looked at only after its first character. A backslash with a letter is a line end in the text of a string.
_MOMENT = re.compile(
    r"""
    [0-9](?:(?<=\\[nrt].)|(?<![0-9A-Za-z.].))(?:
      (?P<date>[09]\d\d[-/.](?:0[1-9]|1[0-2])[-/.][0-3]\d
        (?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:\ ?(?:Z|[+-][01]\d:?[0-5]\d))?)?)
    | (?P<clock>\d?:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:\ ?[AP]M)?(?:\ (?:UTC|GMT|CES?T))?(?:\ 20\d\d)?)
    | (?P<epoch>(?<=1)[6-9]\d{8}(?:\d{3}|\.\d{1,9})?)
    | (?P<took>\d{0,5}(?:\.\d{1,9})?\ ?(?:ms|s|secs?|seconds?|milliseconds?))
    | (?P<day>(?:(?<=[a-z.]\ .)|(?<=[a-z.]\ \ .))\d?(?:st|nd|rd|th)?(?:,?\ +20\d\d)?)
    )(?![0-9A-Za-z])
    """,
    re.VERBOSE,
)
_MONTH = re.compile(
    r"""
    (?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\ +)?(?<![A-Za-z])
    (?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?
    |Nov(?:ember)?|Dec(?:ember)?)\.?\ +\Z
    """,
    re.VERBOSE,
)
"""What stands before the day of a month."""
_LONGEST_MONTH = 26
_UUID_TAIL = re.compile(r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9A-Za-z])")
_UUID_HEAD = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}")
_HOST = re.compile(r"@(?<=[a-z0-9_]@)[a-z0-9][a-z0-9-]{0,62}(?=:[/~])")
"""The name of the machine in a shell's prompt. Each sandbox has its own."""


def digest_of(body: JsonObject) -> str:
    return hashlib.sha256(_steady(body, None).encode()).hexdigest()


def steady_text(body: JsonObject) -> str:
    """What the digest is made of, one value per line, so that two can be compared for their first difference."""
    return _steady(body, 0)


def steady_value(body: JsonObject) -> dict[str, Any]:
    """The same as values, each without its volatile parts. For people: a walk through a request takes long."""
    numbers: dict[str, int] = {}

    def steady(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {_plain(key): steady(value[key], key) for key in sorted(value)}
        if isinstance(value, list):
            return [steady(each) for each in value]
        if not isinstance(value, str):
            return _plain_number(value)
        if name in _ID_NAMES and _ID.fullmatch(f'"{name}": {json.dumps(value)}'):
            return f"<{numbers.setdefault(value, len(numbers) + 1)}>"
        return _plain(value)

    return {name: steady(body.members[name].value, name) for name in sorted(body.members) if name not in _VOLATILE}


def _plain(text: str) -> str:
    plain: str = json.loads(_without_volatile(json.dumps(text)))
    return plain


def _plain_number(value: Any) -> Any:
    written = json.dumps(value)
    plain = _without_volatile(written)
    return value if plain == written else plain


def _steady(body: JsonObject, indent: int | None) -> str:
    """One pass over the whole text: a walk through its values would take several times as long."""
    kept = {name: member.value for name, member in body.members.items() if name not in _VOLATILE}
    text = json.dumps(kept, sort_keys=True, indent=indent)
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f'"{found["name"]}": "<{numbers.setdefault(found["id"], len(numbers) + 1)}>"'

    return _without_volatile(_ID.sub(numbered, text))


def _without_volatile(text: str) -> str:
    return _without_moments(_without_uuids(_HOST.sub("@<host>", text)))


def _without_moments(text: str) -> str:
    pieces, place = [], 0
    for found in _MOMENT.finditer(text):
        start = found.start()
        if found.lastgroup == "day":
            month = _MONTH.search(text, max(start - _LONGEST_MONTH, place), start)
            if month is None:
                continue
            start = month.start()
        pieces += [text[place:start], f"<{found.lastgroup}>"]
        place = found.end()
    return "".join([*pieces, text[place:]])


def _without_uuids(text: str) -> str:
    """Searches for their last four parts: a hyphen is rare."""
    pieces, place = [], 0
    for tail in _UUID_TAIL.finditer(text):
        head = _UUID_HEAD.match(text, max(tail.start() - 8, place))
        if head is not None and head.end() == tail.start():
            pieces += [text[place : head.start()], "<uuid>"]
            place = tail.end()
    return "".join([*pieces, text[place:]]) if pieces else text
