"""The heads of HTTP requests that come through a door.

They are read so strictly that two programs cannot read them differently. A bare line feed, a folded header, a space
before a colon, two lengths, or a target that is not a plain path is refused, not repaired. Nothing of a head is passed
on as it came: the gate writes a new one from the parsed values.

Paths are compared as they are, so one with escapes, dots, empty parts or parameters is refused. ``wire`` says which of
the plain paths are calls of models, and what of a query passes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.plain_http import BadRequest

_LONGEST_HEAD = 32 * 1024
_MOST_HEADERS = 100
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_UNWRITABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udc7f\udd00-\udfff]")
_REQUEST_LINE = re.compile(r"([A-Z]{3,10}) (/[\x21\x24-\x7e]*) HTTP/1\.[01]")
_ONCE = frozenset({"authorization", "content-length", "host", "transfer-encoding"})
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    }
)

_PART = r"(?!\.+(?:/|:|$))[A-Za-z0-9._@-]+(?::[A-Za-z0-9._-]+)*"
_PATH = re.compile(rf"(?:/{_PART})+")
_QUERY = re.compile(r"[A-Za-z0-9_.~%&=+,:@$-]{0,1024}")

Fields = tuple[tuple[str, str], ...]
"""Headers in their order, with names in lower case."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    method: str
    target: str
    fields: Fields
    length: int
    expects_continue: bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: a plain path and a plain query."""

    path: str
    query: str


async def read_request_head(reader: asyncio.StreamReader, longest_body: int) -> RequestHead | None:
    """The head of a request. ``None`` if the client closed the connection. ``BadRequest`` if the head is not plain."""
    line, fields = _split(await _read(reader)) or ("", ())
    if not line:
        return None
    found = _REQUEST_LINE.fullmatch(line)
    if not found:
        raise BadRequest(400, "Requests are a method, a path and HTTP/1.1.")
    known = dict(fields)
    if "transfer-encoding" in known:
        raise BadRequest(411, "Requests need a Content-Length.")
    length = known.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,12}", length):
        raise BadRequest(400, "The Content-Length is not a number.")
    if int(length) > longest_body:
        raise BadRequest(413, "The body is too long.")
    return RequestHead(found[1], found[2], fields, int(length), known.get("expect", "").lower() == "100-continue")


def plain_target(method: str, target: str) -> Target:
    """``BadRequest`` unless it is a plain path with a plain query."""
    if method not in ("GET", "POST"):
        raise BadRequest(405, "Models are called by GET and POST.")
    path, _, query = target.partition("?")
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise BadRequest(403, "Only plain paths of model calls are open here, such as POST /v1/chat/completions.")
    return Target(path, query)


def end_to_end(fields: Fields, dropped: Iterable[str] = ()) -> Fields:
    """The headers without those for one connection only, and without the dropped ones."""
    named = {word.strip().lower() for name, value in fields if name == "connection" for word in value.split(",")}
    gone = _HOP_BY_HOP | (named - {"content-length", "transfer-encoding"}) | set(dropped)
    return tuple((name, value) for name, value in fields if name not in gone)


def written(line: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """Never raises. A provider's bytes are written as they came, except that line ends and bytes that are no text are
    replaced."""
    lines = [line, *(f"{name}: {value}" for name, value in fields)]
    text = "\r\n".join(_UNWRITABLE.sub("?", each) for each in lines) + "\r\n\r\n"
    return text.encode("utf-8", "surrogateescape")


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if b"\n" in error.partial:
            raise BadRequest(400, "The head is not complete.") from error
        return b""
    except asyncio.LimitOverrunError as error:
        raise BadRequest(431, "The headers are too long.") from error
    if len(head) > _LONGEST_HEAD:
        raise BadRequest(431, "The headers are too long.")
    return head


def _split(head: bytes) -> tuple[str, Fields] | None:
    if not head:
        return None
    line, *rest = head[:-4].decode("latin-1").split("\r\n")
    if len(rest) > _MOST_HEADERS:
        raise BadRequest(431, "There are too many headers.")
    fields = []
    for text in rest:
        name, colon, value = text.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadRequest(400, "A header is broken.")
        fields.append((name.lower(), value.strip(" \t")))
    names = [name for name, _ in fields]
    if any(names.count(name) > 1 for name in _ONCE):
        raise BadRequest(400, "A header that may occur once came twice.")
    return line, tuple(fields)
