"""The part of a request that is the same when a trial runs again, and its digest.

Left out are names of sessions and users, and everything that says when and where a request was made: dates, times of
day, seconds since 1970, durations, random ids, process ids that are called so, names that ``mktemp`` draws, the
kernel's release, and the sandbox's name in the prompt of a shell (``root@NAME:/app#``). Ids of tool calls are numbered
in their order, because some agents invent them. Two requests of one trial may become equal by that, so a record is read
in its order.

A value is left out only if something shows that it is volatile: a label, a form that people do not write, or a place
that only programs write to. A random look is not enough, or a changed task would get the answers of the old one.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from seatrial.gateway.wire.json_text import JsonObject

DIGEST_RULES = 2
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
    | (?P<pid>(?:(?<=[Dd][=:\ ].)|(?<=[Dd]:\ .))\d{0,6})
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
_PROCESS = re.compile(r"(?:(?<=\\[nrt])|(?<![A-Za-z]))(?:P?PID|PGID|p?pid|pgid)(?:: ?|=| )\Z")
"""What stands before the id of a process. gemini-cli tells one with the output of each command."""
_LONGEST_PROCESS = 8
_UUID_TAIL = re.compile(r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9A-Za-z])")
_UUID_HEAD = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}")
_HOST = re.compile(r"@(?<=[a-z0-9_]@)[a-z0-9][a-z0-9-]{0,62}(?=:[/~])")
"""The name of the machine in a shell's prompt. Each sandbox has its own."""
_TEMPORARY = re.compile(
    r"""
    tmp/(?:
      tmp\.[A-Za-z0-9]{10}
    | tmp[a-z0-9][a-z0-9_]{7}
    | (?P<named>[A-Za-z][A-Za-z_.-]{0,40}-)[0-9a-f]{8}-[a-z0-9_]{8}
    )(?![0-9A-Za-z_-])
    """,
    re.VERBOSE,
)
"""Names as ``mktemp`` and Python's ``tempfile`` draw them, also behind a name and the short id of a session (vibe)."""
_KERNEL = re.compile(
    r"Linux (?<![A-Za-z] Linux )(?:[a-z0-9][a-z0-9.-]{0,62} )?[1-9]\d?\.\d{1,3}\.\d{1,3}[0-9A-Za-z.+_~-]*"
    r'(?: #\d[^"\\]{0,100}?(?= (?:x86_64|aarch64)))?'
)
"""What ``uname`` tells of the machine. After a word it is the name of a distribution, and its version is not ours."""
_REPLACED = ((_HOST, "@<host>"), (_TEMPORARY, r"tmp/\g<named><temporary>"), (_KERNEL, "Linux <kernel>"))
_OUTPUT = "output"
_OUTPUT_ID = re.compile(rf'"{_OUTPUT}": "(?:[A-Z][a-z]* ){{1,3}}ID: (?P<id>[0-9a-f]{{6,32}})(?=\\n)')
"""An id in the first line of what a tool gave back. codex gives one to each piece of output."""


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
        return _plain(value, name)

    return {name: steady(body.members[name].value, name) for name in sorted(body.members) if name not in _VOLATILE}


def _plain(text: str, name: str = "") -> str:
    """``name``: of the member whose value it is, because one rule asks for it."""
    member = _without_volatile(f"{{{json.dumps(name)}: {json.dumps(text)}}}")
    [plain] = json.loads(member).values()
    return str(plain)


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
    for pattern, steady in _REPLACED:
        text = pattern.sub(steady, text)
    return _without_moments(_without_uuids(_OUTPUT_ID.sub(_without_id, text)))


def _without_id(found: re.Match[str]) -> str:
    return f"{found[0].removesuffix(found['id'])}<id>"


def _without_moments(text: str) -> str:
    pieces, place = [], 0
    for found in _MOMENT.finditer(text):
        start = found.start()
        if found.lastgroup == "day":
            month = _MONTH.search(text, max(start - _LONGEST_MONTH, place), start)
            if month is None:
                continue
            start = month.start()
        elif found.lastgroup == "pid" and not _PROCESS.search(text, max(start - _LONGEST_PROCESS, place), start):
            continue
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
