"""Finds addresses in a request that the provider would fetch: pictures, files and videos by URL.

A sandbox without a network could send out what it has in such an address, and get a page's content back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from seatrial.gateway.wire.json_text import JsonObject

_FETCHED = frozenset(
    {"audio_url", "file_data", "file_uri", "file_url", "fileuri", "image_url", "input_image", "video_url"}
)
"""Names of the four formats and of their resellers, in lower case: some servers ignore case."""
_SOURCES = frozenset({"source", *_FETCHED})
"""Their value may be an object with a ``url``."""
_AGENTS_OWN = frozenset({"args", "input", "response"})
"""What the agent's own tools were called with, and what they gave. It is text to the provider."""
_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]*+")
"""Base64, or an id. Every address with a scheme has a colon."""
_TOOL_KINDS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def remote_addresses(body: JsonObject) -> Iterator[str]:
    """Addresses on other machines. Content that is in the request itself (``data:``) is none."""
    waiting: list[Any] = [member.value for member in body.members.values()]
    waiting.append({name: member.value for name, member in body.members.items()})
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for name, inner in value.items():
                if (folded := name.casefold()) in _SOURCES:
                    yield from _addresses(folded, inner)
                if isinstance(inner, (dict, list)) and not _is_agents_own(value, name):
                    waiting.append(inner)


def _addresses(name: str, value: Any) -> Iterator[str]:
    """``name`` is one of ``_SOURCES``."""
    if name in _FETCHED and isinstance(value, str) and _is_remote(value):
        yield value
    if isinstance(value, dict):
        yield from (
            text
            for key, text in value.items()
            if key.casefold() in ("url", *_FETCHED) and isinstance(text, str) and _is_remote(text)
        )


def _is_remote(value: str) -> bool:
    """True for everything that is neither content nor an id, because programs differ in how they read addresses."""
    text = value.strip()
    if text[:5].casefold() == "data:":
        return False
    return text.startswith("//") or _PLAIN.fullmatch(text) is None


def _is_agents_own(value: dict[str, Any], name: str) -> bool:
    """Inside of ``tool_use`` (Anthropic), ``functionCall`` and ``functionResponse`` (Google)."""
    if name not in _AGENTS_OWN:
        return False
    kind = value.get("type")
    return kind in _TOOL_KINDS if isinstance(kind, str) else "name" in value and "role" not in value
