"""Estimates the tokens of a prompt before it is sent. A reservation needs an expectation, not a count."""

from __future__ import annotations

from typing import Any

BYTES_PER_TOKEN = 4
_MEDIA_TOKENS = 1_500
"""About what a screenshot costs."""
_LONG = 2_000
_MEDIA_NAMES = frozenset({"data", "image_url", "url", "file_data", "b64_json", "encrypted_content", "signature"})


def estimated_tokens(values: list[Any]) -> int:
    """From the length of all texts. Pictures and other media are long in base64 and short in tokens."""
    length = media = 0
    waiting = values
    while waiting:
        following: list[Any] = []
        for value in waiting:
            if isinstance(value, str):
                length += _bytes(value)
            elif isinstance(value, dict):
                for name, inner in value.items():
                    length += len(name) + 4
                    if isinstance(inner, str) and _is_media(name, inner):
                        media += min(len(inner) // BYTES_PER_TOKEN, _MEDIA_TOKENS)
                    else:
                        following.append(inner)
            elif isinstance(value, list):
                following += value
            else:
                length += 2
        waiting = following
    return length // BYTES_PER_TOKEN + media + 1


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _is_media(name: str, text: str) -> bool:
    return len(text) > _LONG and (name in _MEDIA_NAMES or text.startswith("data:")) and " " not in text[:_LONG]
