"""Which calls are open to agents: their paths, and what of a query passes.

A provider has more at the same address and key: files, batches, fine-tuning, billing. Paths are compared as they are,
so one with escapes, dots or empty parts is no call.
"""

from __future__ import annotations

import re

from seatrial.gateway.wire.chat import ChatFormat, EmbeddingsFormat
from seatrial.gateway.wire.format import WireFormat
from seatrial.gateway.wire.gemini import GeminiFormat
from seatrial.gateway.wire.json_text import BadCall
from seatrial.gateway.wire.messages import MessagesFormat
from seatrial.gateway.wire.responses import ResponsesFormat

CHAT, EMBEDDINGS, RESPONSES = ChatFormat(), EmbeddingsFormat(), ResponsesFormat()
MESSAGES, GEMINI = MessagesFormat(), GeminiFormat()
FORMATS: dict[str, WireFormat] = {each.name: each for each in (CHAT, EMBEDDINGS, RESPONSES, MESSAGES, GEMINI)}

_VERSION = r"(?:/api)?(?:/v1(?:alpha|beta)?)?"
_NAME = r"(?!\.+(?:[/:]|$))[A-Za-z0-9][A-Za-z0-9._@-]*"
_POST = (
    (re.compile(rf"{_VERSION}/chat/completions"), CHAT),
    (re.compile(rf"{_VERSION}/embeddings"), EMBEDDINGS),
    (re.compile(rf"{_VERSION}/responses(?:/compact|/input_tokens)?"), RESPONSES),
    (re.compile(rf"{_VERSION}/messages(?:/count_tokens)?"), MESSAGES),
    (re.compile(rf"{_VERSION}/models/{_NAME}:(?:generateContent|streamGenerateContent|countTokens)"), GEMINI),
)
_GET = (
    (re.compile(r"/v1(?:alpha|beta)/models"), GEMINI),
    (re.compile(rf"{_VERSION}/models"), CHAT),
)
_QUERY = {
    "alt": re.compile("sse|json"),
    "beta": re.compile("true"),
    "api-version": re.compile(r"[0-9a-z.-]{1,40}"),
    "client_version": re.compile(r"[0-9A-Za-z.-]{1,40}"),
}
"""Others could change what an answer tells: Google's ``fields`` leaves the usage out of it."""
_KEYS = frozenset({"key", "api_key"})


def format_of(method: str, path: str) -> WireFormat | None:
    """The format of a call, by its path without a query; ``None`` if it is not open."""
    table = {"POST": _POST, "GET": _GET}.get(method, ())
    return next((format_ for pattern, format_ in table if pattern.fullmatch(path)), None)


def passing_query(format_: WireFormat, path: str, query: str) -> str:
    """What of a request's query passes: nothing that changes an answer, and no key. ``BadCall`` for the rest."""
    kept = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name in _KEYS:
            continue
        if name not in _QUERY or not _QUERY[name].fullmatch(value):
            raise BadCall(f"The parameter {name[:50]!r} is not open.")
        kept.append(part)
    streams = format_ is GEMINI and path.endswith(":streamGenerateContent")
    if streams and "alt=sse" not in kept:
        raise BadCall("Streams of this format are asked for with alt=sse.")
    if not streams and "alt=sse" in kept:  # its answer would be a stream, and the gate would not count it
        raise BadCall("'alt=sse' is for streams.")
    names = [part.partition("=")[0] for part in kept]
    if len(set(names)) != len(names):
        raise BadCall("A parameter occurs twice.")
    return "&".join(kept)


def models_answer(format_: WireFormat, models: list[str]) -> bytes:
    """The answer to ``GET …/models``. OpenAI and Anthropic have it at one path: ask with the format of the headers."""
    return format_.models(list(models))


def models_format(path: str, header_names: frozenset[str]) -> WireFormat | None:
    """The format of a question for the list of models. Anthropic's clients send ``anthropic-version``."""
    found = format_of("GET", path)
    return MESSAGES if found is CHAT and "anthropic-version" in header_names else found
