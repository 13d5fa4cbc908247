"""Anthropic's messages, which claude-code speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from seatrial.scripted_models.answer import Answer, Asked
from seatrial.scripted_models.formats.format import event, pieces, tool_call, view_of
from seatrial.scripted_models.tools import Offered

_COUNT = "/messages/count_tokens"
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages:
    """Implements ``Format``."""

    name: ClassVar[str] = "messages"
    length_at: ClassVar[tuple[str, str] | None] = (_COUNT, "input_tokens")

    def serves(self, path: str) -> bool:
        return path in ("/messages", _COUNT)

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        system = body.get("system") or ()
        messages = [{"role": "system", "content": _text(system)}] if system else []
        messages += [_message(message) for message in body["messages"]]
        offered = [
            Offered(str(tool["name"]), tool["input_schema"])
            for tool in body.get("tools") or ()
            if "input_schema" in tool
        ]
        wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return Asked(
            model=str(body["model"]),
            view=view_of(messages, offered),
            streams=bool(body.get("stream")),
            schema=wanted.get("schema"),
        )

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        return _envelope(answer) | {
            "content": _blocks(answer),
            "stop_reason": _stop_reason(answer),
            "usage": _prompt_usage(answer) | {"output_tokens": answer.counted.output_tokens},
        }

    def events(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        begun = _envelope(answer) | {"usage": _prompt_usage(answer) | {"output_tokens": 1}}
        yield _told("message_start", message=begun)
        for index, block in enumerate(_blocks(answer)):
            is_text = block["type"] == "text"
            emptied: dict[str, Any] = {"text": ""} if is_text else {"input": {}}
            yield _told("content_block_start", index=index, content_block={**block, **emptied})
            yield _told("ping")
            if is_text:
                for piece in pieces(answer.text):
                    yield _told("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
            else:
                for piece in pieces(json.dumps(block["input"])):
                    delta = {"type": "input_json_delta", "partial_json": piece}
                    yield _told("content_block_delta", index=index, delta=delta)
            yield _told("content_block_stop", index=index)
        ended = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        yield _told("message_delta", delta=ended, usage={"output_tokens": answer.counted.output_tokens})
        yield _told("message_stop")

    def error(self, status: int, message: str, kind: str, code: str | None = None) -> dict[str, Any]:
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {"role": message["role"], "content": content}
    calls = [tool_call(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
    results = any(block["type"] == "tool_result" for block in content)
    return {
        "role": "tool" if results else message["role"],
        "content": _text(content),
        **({"tool_calls": calls} if calls else {}),
    }


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        _text(block.get("content") or "") if block["type"] == "tool_result" else str(block.get("text", ""))
        for block in content
        if block["type"] in ("text", "tool_result")
    )


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    said = [{"type": "text", "text": answer.text}]
    if answer.call is None:
        return said
    call = answer.call
    return [*said, {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.arguments)}]


def _stop_reason(answer: Answer) -> str:
    return "end_turn" if answer.call is None else "tool_use"


def _prompt_usage(answer: Answer) -> dict[str, int]:
    """Anthropic counts the cached part beside the rest."""
    counted = answer.counted
    return {
        "input_tokens": counted.input_tokens - counted.cached_tokens,
        "cache_read_input_tokens": counted.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _envelope(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _told(kind: str, **content: Any) -> bytes:
    return event({"type": kind, **content}, kind)
