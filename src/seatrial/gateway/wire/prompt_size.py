"""Estimates the tokens of a prompt before it is sent. A reservation needs an expectation, not a count.

Pictures and sounds are long in base64 and short in tokens. Only they are counted in another way, and only where a
format has them: what looks like one elsewhere, such as in the description of a tool, is text to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from seatrial.gateway.wire.fields import inner, items
from seatrial.gateway.wire.json_text import JsonObject

BYTES_PER_TOKEN = 4
_PICTURE_TOKENS = 1_500
"""About what a screenshot costs, however well it is compressed."""
_SOUND_CHARACTERS = 16
"""Of base64 for one token. Speech and film of the lowest quality have about twice as many."""


@dataclass(frozen=True, slots=True)
class PromptSize:
    """How long a prompt is."""

    tokens: int
    unknown: tuple[str, ...] = ()
    """Parts that are not in the request: files by their id or address. They may have any length."""


def text_tokens(text: str) -> int:
    """Four characters of English are about a token. So is one Chinese or Japanese character."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return plain // BYTES_PER_TOKEN + len(text) - plain


def prompt_size(body: JsonObject, parts: Callable[[JsonObject], Iterator[_Part]]) -> PromptSize:
    """``parts``: those of the format that are not text."""
    tokens, unknown = text_tokens(body.text), {}
    for part in parts(body):
        tokens += part.tokens - text_tokens(part.text)
        if part.unknown:
            unknown[part.unknown] = True
    return PromptSize(max(tokens, 0) + 1, tuple(unknown))


@dataclass(frozen=True, slots=True)
class _Part:
    """Something in a prompt that is not counted as text."""

    text: str
    """Its characters in the request."""
    tokens: int
    unknown: str = ""
    """What it is, if its length is not known."""


def chat_parts(body: JsonObject) -> Iterator[_Part]:
    for message in items(body.get("messages")):
        for part in items(message.get("content")):
            match part.get("type"):
                case "image_url" | "video_url" | "audio_url" as kind:
                    address = part.get(kind)
                    yield from _at(inner(part, kind).get("url") if isinstance(address, dict) else address, kind)
                case "input_audio":
                    yield from _sound(inner(part, "input_audio").get("data"))
                case "file":
                    yield from _elsewhere(inner(part, "file"), "file_id")


def responses_parts(body: JsonObject) -> Iterator[_Part]:
    for item in items(body.get("input")):
        if item.get("type") == "item_reference":
            yield _Part("", 0, "item_reference")
        shown = item.get("output")
        for part in (*items(item.get("content")), *items(shown), *items([shown]), item):
            match part.get("type"):
                case "input_image" | "computer_screenshot":
                    yield from _at(part.get("image_url"), "image_url")
                case "input_audio":
                    yield from _sound(inner(part, "input_audio").get("data"))
                case "input_file":
                    yield from _elsewhere(part, "file_id", "file_url")


def messages_parts(body: JsonObject) -> Iterator[_Part]:
    waiting = [part for message in items(body.get("messages")) for part in items(message.get("content"))]
    while waiting:
        part = waiting.pop()
        source = inner(part, "source")
        match part.get("type"):
            case "tool_result":
                waiting += items(part.get("content"))
            case "image" if source.get("type") == "base64":
                yield from _inline(source.get("media_type"), source.get("data"))
            case "image":
                yield _Part("", _PICTURE_TOKENS)
            case "document" if source.get("type") in ("url", "file"):
                yield _Part("", 0, f"document by {source['type']}")
            case "container_upload":
                yield _Part("", 0, "container_upload")


def gemini_parts(body: JsonObject) -> Iterator[_Part]:
    turns = [*items(body.get("contents")), *(inner({"": body.get(name)}, "") for name in _INSTRUCTIONS)]
    waiting = [part for turn in turns for part in items(turn.get("parts"))]
    while waiting:
        part = waiting.pop()
        waiting += [each for name in _RESPONSES for each in items(inner(part, name).get("parts"))]
        for name in ("inlineData", "inline_data"):
            data = inner(part, name)
            yield from _inline(data.get("mimeType", data.get("mime_type")), data.get("data"))
        for name in ("fileData", "file_data"):
            file = inner(part, name)
            if str(file.get("mimeType", file.get("mime_type"))).startswith("image/"):
                yield _Part("", _PICTURE_TOKENS)
            elif file:
                yield _Part("", 0, name)


_INSTRUCTIONS = ("systemInstruction", "system_instruction")
_RESPONSES = ("functionResponse", "function_response")


def no_parts(body: JsonObject) -> Iterator[_Part]:
    """For a format that has only text."""
    return iter(())


def _at(address: Any, kind: str) -> Iterator[_Part]:
    """What an address leads to: content in the request itself (``data:``), or a picture elsewhere."""
    if not isinstance(address, str):
        return
    head = address[:100]
    if head.startswith("data:") and ";base64," in head:
        yield from _inline(head[5:], address)
    elif kind != "image_url":
        yield _Part("", 0, kind)
    elif not head.startswith("data:"):
        yield _Part("", _PICTURE_TOKENS)


def _inline(kind: Any, data: Any) -> Iterator[_Part]:
    """Content in base64. Documents count as text: a model reads their words."""
    if not isinstance(kind, str) or not isinstance(data, str):
        return
    if kind.startswith("image/"):
        yield _Part(data, _PICTURE_TOKENS)
    elif kind.startswith(("audio/", "video/")):
        yield from _sound(data)


def _sound(data: Any) -> Iterator[_Part]:
    if isinstance(data, str):
        yield _Part(data, len(data) // _SOUND_CHARACTERS)


def _elsewhere(part: dict[str, Any], *names: str) -> Iterator[_Part]:
    for name in names:
        if part.get(name) is not None:
            yield _Part("", 0, name)
