"""Addresses that a provider would fetch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from seatrial.gateway.wire import read_object, remote_addresses

PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "chat": lambda url: {"messages": [{"content": [{"type": "image_url", "image_url": {"url": url}}]}]},
    "chat, a file": lambda url: {"messages": [{"content": [{"type": "file", "file": {"file_data": url}}]}]},
    "responses": lambda url: {"input": [{"content": [{"type": "input_image", "image_url": url}]}]},
    "responses, a file": lambda url: {"input": [{"content": [{"type": "input_file", "file_url": url}]}]},
    "messages": lambda url: {"messages": [{"content": [{"type": "image", "source": {"type": "url", "url": url}}]}]},
    "gemini": lambda url: {"contents": [{"parts": [{"fileData": {"fileUri": url}}]}]},
    "gemini, its second spelling": lambda url: {"contents": [{"parts": [{"file_data": {"file_uri": url}}]}]},
}
REMOTE = [
    "https://elsewhere.example/x",
    "HTTPS://elsewhere.example/x",
    "//elsewhere.example/x",
    " \thttps://elsewhere.example/x",
    "https:\\\\elsewhere.example/x",
    "https:/elsewhere.example/x",
    "https:elsewhere.example",
    "\x01\x1fhttps://elsewhere.example/x",
    "\0https://elsewhere.example/x",
    "ht\ntps://elsewhere.example/x",
    "\u200bhttps://elsewhere.example/x",
    "\\\\elsewhere.example\\x",
    "gs://bucket/file",
    "file:///etc/passwd",
    "x" * 100 + "://elsewhere.example",
    "https\uff1a//elsewhere.example/x",
]
INSIDE = [
    "data:image/png;base64,AAAA",
    "DATA:image/png;base64,AAAA",
    "data:,https://is.only/text",
    "iVBORw0KGgo+/A==",
    "file-abc_123",
    "files/abc-123",
    "",
]


def found(part: dict[str, Any]) -> set[str]:
    return set(remote_addresses(read_object(json.dumps(part).encode())))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("address", REMOTE)
def test_an_address_is_found_in_whatever_disguise(name: str, address: str) -> None:
    assert found(PARTS[name](address)) == {address}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("content", INSIDE)
def test_content_and_ids_are_no_addresses(name: str, content: str) -> None:
    assert found(PARTS[name](content)) == set()


def test_what_a_tool_was_called_with_is_text() -> None:
    tool = {"type": "tool_use", "name": "fetch", "input": {"image_url": "https://elsewhere.example/x"}}
    assert found({"messages": [{"content": [tool]}]}) == set()
