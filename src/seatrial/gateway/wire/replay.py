"""The part of a request that is the same when a trial runs again, and its digest.

Left out are names of sessions and users, and everything that says when a request was made: dates, times of day, seconds
since 1970, durations and random ids in texts. Ids of tool calls are numbered in their order, because some agents invent
them. Two requests of one trial may become equal by that, so a record is read in its order.
"""

from __future__ import annotations

import hashlib
import json
import re

from seatrial.gateway.wire.json_text import JsonObject

_VOLATILE = frozenset(
    {
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata", "labels", "session_id"),
        *("stream_options", "service_tier", "store", "user_profile_id", "workspace_id", "diagnostics"),
    }
)
"""Top-level names of requests that do not say what is asked."""
_ID = re.compile(
    r'"(?P<name>id|tool_call_id|tool_use_id|call_id|item_id|previous_response_id)": "(?P<id>[^"\\]{1,200})"'
)
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


def digest_of(body: JsonObject) -> str:
    return hashlib.sha256(_steady(body, None).encode()).hexdigest()


def steady_text(body: JsonObject) -> str:
    """What the digest is made of, one value per line, so that two can be compared for their first difference."""
    return _steady(body, 0)


def _steady(body: JsonObject, indent: int | None) -> str:
    """One pass over the whole text: a walk through its values would take several times as long."""
    kept = {name: member.value for name, member in body.members.items() if name not in _VOLATILE}
    text = json.dumps(kept, sort_keys=True, indent=indent)
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f'"{found["name"]}": "<{numbers.setdefault(found["id"], len(numbers) + 1)}>"'

    return _without_moments(_without_uuids(_ID.sub(numbered, text)))


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
