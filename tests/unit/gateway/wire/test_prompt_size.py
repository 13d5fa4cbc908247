"""How long a prompt is taken to be before it is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial.gateway.wire import FORMATS, CallRequest
from tests.unit.gateway.wire.samples import REQUESTS

LONG = "A" * 400_000
"""100,000 tokens if it is text."""
PICTURE = f"data:image/png;base64,{LONG}"
PDF = f"data:application/pdf;base64,{LONG}"


def read(name: str, *, ascii_only: bool = True, **changes: Any) -> CallRequest:
    path, body = REQUESTS[name]
    return FORMATS[name].read_request(path, json.dumps({**body, **changes}, ensure_ascii=ascii_only).encode())


def chat(*parts: dict[str, Any]) -> CallRequest:
    return read("chat", messages=[{"role": "user", "content": list(parts)}])


def responses(*items: dict[str, Any]) -> CallRequest:
    return read("responses", input=list(items))


def messages(*parts: dict[str, Any]) -> CallRequest:
    return read("messages", messages=[{"role": "user", "content": list(parts)}])


def gemini(*parts: dict[str, Any]) -> CallRequest:
    return read("gemini", contents=[{"role": "user", "parts": list(parts)}])


def base64(kind: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": kind, "data": LONG}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("name", FORMATS)
def test_other_scripts_have_a_token_for_each_character(name: str, ascii_only: bool) -> None:
    """Also if they are written as escapes."""
    found = read(name, ascii_only=ascii_only, instructions="\u4e16" * 100_000 + "word" * 1000)
    assert 101_000 <= found.input_tokens_estimate < 152_000


PICTURES = {
    "chat": lambda: chat({"type": "image_url", "image_url": {"url": PICTURE}}),
    "responses": lambda: responses({"role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]}),
    "responses, of a tool": lambda: responses(
        {"type": "function_call_output", "output": [{"type": "input_image", "image_url": PICTURE}]}
    ),
    "responses, of a screen": lambda: responses(
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PICTURE}}
    ),
    "messages": lambda: messages({"type": "image", "source": base64("image/png")}),
    "messages, of a tool": lambda: messages(
        {"type": "tool_result", "content": [{"type": "image", "source": base64("image/jpeg")}]}
    ),
    "gemini": lambda: gemini({"inlineData": {"mimeType": "image/png", "data": LONG}}),
    "gemini, its second spelling": lambda: gemini({"inline_data": {"mime_type": "image/png", "data": LONG}}),
    "gemini, of a tool": lambda: gemini(
        {"functionResponse": {"name": "a", "parts": [{"inlineData": {"mimeType": "image/png", "data": LONG}}]}}
    ),
    "chat, by its address": lambda: chat({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}),
    "messages, by its address": lambda: messages({"type": "image", "source": {"type": "url", "url": "https://a"}}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_one(name: str) -> None:
    found = PICTURES[name]()
    assert 1_500 < found.input_tokens_estimate < 1_700 and found.unsized == ()


@pytest.mark.parametrize(
    "found",
    [
        lambda: chat({"type": "input_audio", "input_audio": {"data": LONG, "format": "mp3"}}),
        lambda: gemini({"inlineData": {"mimeType": "audio/mp3", "data": LONG}}),
        lambda: chat({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{LONG}"}}),
    ],
)
def test_sound_is_shorter_than_text(found: Any) -> None:
    assert 25_000 <= found().input_tokens_estimate < 26_000


SPOKEN_OF = {"type": "text", "text": 'of "base64" and ;base64, and inlineData'}
BY_SIZE = {
    "a result of a tool with data": lambda: gemini(
        {"functionResponse": {"name": "a", "response": {"data": LONG, "inlineData": {"data": LONG}}}}
    ),
    "the call of a tool": lambda: messages(
        {"type": "tool_use", "name": "a", "input": {"type": "image", "source": base64("image/png")}}, SPOKEN_OF
    ),
    "a field named url": lambda: chat(SPOKEN_OF, {"type": "text", "text": "", "url": LONG}),
    "a tool that describes a picture": lambda: read(
        "chat", tools=[{"type": "function", "function": {"type": "image_url", "image_url": {"url": PICTURE}}}]
    ),
    "metadata": lambda: read("responses", metadata={"type": "input_image", "image_url": PICTURE}),
    "text that calls itself a picture": lambda: messages({"type": "image", "source": base64("text/plain")}),
    "text at a picture's place": lambda: chat(SPOKEN_OF, {"type": "image_url", "image_url": {"url": PDF}}),
    "a document of chat": lambda: chat({"type": "file", "file": {"file_data": PDF}}),
    "a document of responses": lambda: responses({"content": [{"type": "input_file", "file_data": PDF}]}),
    "a document of messages": lambda: messages({"type": "document", "source": base64("application/pdf")}),
    "a document of gemini": lambda: gemini({"inlineData": {"mimeType": "application/pdf", "data": LONG}}),
    "reasoning that is not shown": lambda: responses({"type": "reasoning", "encrypted_content": LONG}),
    "another format's picture": lambda: messages(SPOKEN_OF, {"type": "image_url", "image_url": {"url": PICTURE}}),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_everything_else_is_counted_by_its_size(name: str) -> None:
    assert BY_SIZE[name]().input_tokens_estimate >= 100_000


UNSIZED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "an earlier response": (lambda: read("responses", previous_response_id="resp_1"), ("previous_response_id",)),
    "a conversation": (lambda: read("responses", conversation="conv_1"), ("conversation",)),
    "an item": (lambda: responses({"type": "item_reference", "id": "msg_1"}), ("item_reference",)),
    "a cache": (lambda: read("gemini", cachedContent="cachedContents/a"), ("cachedContent",)),
    "a cache in the second spelling": (lambda: read("gemini", cached_content="a"), ("cached_content",)),
    "a file of chat": (lambda: chat({"type": "file", "file": {"file_id": "file-1"}}), ("file_id",)),
    "a file of responses": (
        lambda: responses({"content": [{"type": "input_file", "file_url": "https://a.example/b.pdf"}]}),
        ("file_url",),
    ),
    "a file of messages": (
        lambda: messages({"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}}),
        ("document by url",),
    ),
    "a file of gemini": (lambda: gemini({"fileData": {"fileUri": "files/a", "mimeType": "video/mp4"}}), ("fileData",)),
}


@pytest.mark.parametrize("name", UNSIZED)
def test_what_is_not_in_the_request_is_named(name: str) -> None:
    found, named = UNSIZED[name]
    assert found().unsized == named


@pytest.mark.parametrize("name", FORMATS)
def test_a_plain_request_has_all_of_its_prompt(name: str) -> None:
    assert read(name, previous_response_id=None, conversation=None, cachedContent=None).unsized == ()
