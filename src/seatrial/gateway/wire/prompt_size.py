"""Estimates the tokens of a prompt before it is sent. A reservation needs an expectation, not a count."""

from __future__ import annotations

from typing import Any

from seatrial.gateway.wire.json_text import JsonObject

BYTES_PER_TOKEN = 4
_MEDIA_TOKENS = 1_500
"""About what a screenshot costs."""
_LONG = 2_000
_MEDIA_WORDS = (";base64,", '"base64"', "inlineData", "inline_data", "encrypted_content", "file_data", "input_audio")
"""A request without any of them has only text."""
_MEDIA_NAMES = frozenset({"data", "image_url", "url", "file_data", "b64_json", "encrypted_content"})


def estimated_tokens(body: JsonObject) -> int:
    """From the length of the text. Pictures and other media are long in base64 and short in tokens."""
    length = len(body.text)
    if length <= _LONG or not any(word in body.text for word in _MEDIA_WORDS):
        return length // BYTES_PER_TOKEN + 1
    media = [len(text) for text in _media([member.value for member in body.members.values()])]
    tokens = sum(min(size // BYTES_PER_TOKEN, _MEDIA_TOKENS) for size in media)
    return (length - sum(media)) // BYTES_PER_TOKEN + tokens + 1


def _media(waiting: list[Any]) -> list[str]:
    found = []
    while waiting:
        following: list[Any] = []
        for value in waiting:
            if isinstance(value, dict):
                found += [inner for name, inner in value.items() if isinstance(inner, str) and _is_media(name, inner)]
                following += value.values()
            elif isinstance(value, list):
                following += value
        waiting = following
    return found


def _is_media(name: str, text: str) -> bool:
    return len(text) > _LONG and (name in _MEDIA_NAMES or text.startswith("data:")) and " " not in text[:_LONG]
