"""OpenAI's chat completions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from seatrial.scripted_models.answer import CHARS_PER_TOKEN, Answer, Asked
from seatrial.scripted_models.formats.format import event, pieces, view_of
from seatrial.scripted_models.tools import Offered


class Chat:
    """Implements ``Format``."""

    name: ClassVar[str] = "chat"
    length_at: ClassVar[tuple[str, str] | None] = None

    def serves(self, path: str) -> bool:
        return path == "/chat/completions"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        offered = [_offered(tool.get("function") or {}) for tool in body.get("tools") or ()]
        options = body.get("stream_options") or {}
        return Asked(
            model=str(body["model"]),
            view=view_of(body["messages"], offered),
            streams=bool(body.get("stream")),
            tells_usage=bool(options.get("include_usage")),
            for_terminal=True,
            caches=False,
            logprobs=bool(body.get("logprobs")),
            token_ids=bool(body.get("return_token_ids")),
        )

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.call is not None:
            message["tool_calls"] = [_tool_call(answer)]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer), "logprobs": None}
        choice |= _tokens(answer.text, asked)
        return _envelope(answer, "chat.completion", [choice]) | _prompt(answer, asked) | {"usage": _usage(answer)}

    def events(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        kind = "chat.completion.chunk"
        yield event(_envelope(answer, kind, [_delta({"role": "assistant", "content": ""})]) | _prompt(answer, asked))
        for piece in pieces(answer.text):
            yield event(_envelope(answer, kind, [_delta({"content": piece}) | _tokens(piece, asked)]))
        if answer.call is not None:
            yield event(_envelope(answer, kind, [_delta({"tool_calls": [{"index": 0, **_tool_call(answer)}]})]))
        yield event(_envelope(answer, kind, [_delta({}, _finish_reason(answer))]))
        if asked.tells_usage:
            yield event(_envelope(answer, kind, []) | {"usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    def error(self, status: int, message: str, kind: str, code: str | None = None) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _offered(function: Mapping[str, Any]) -> Offered:
    return Offered(str(function.get("name", "")), function.get("parameters") or {})


def _prompt(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {"prompt_token_ids": list(range(answer.counted.input_tokens))} if asked.token_ids else {}


def _tokens(text: str, asked: Asked) -> dict[str, Any]:
    """A token is four characters. Its id and its probability follow from them, so equal answers have equal ones."""
    words = [text[start : start + CHARS_PER_TOKEN] for start in range(0, len(text), CHARS_PER_TOKEN)]
    ids = [zlib.crc32(word.encode()) % 100_000 for word in words]
    told = [
        {"token": word, "logprob": -(id_ % 1000) / 100, "top_logprobs": []}
        for word, id_ in zip(words, ids, strict=True)
    ]
    return ({"logprobs": {"content": told}} if asked.logprobs else {}) | ({"token_ids": ids} if asked.token_ids else {})


def _usage(answer: Answer) -> dict[str, int]:
    counted = answer.counted
    return {
        "prompt_tokens": counted.input_tokens,
        "completion_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
    }


def _finish_reason(answer: Answer) -> str:
    return "stop" if answer.call is None else "tool_calls"


def _tool_call(answer: Answer) -> dict[str, Any]:
    assert answer.call is not None
    function = {"name": answer.call.name, "arguments": json.dumps(answer.call.arguments)}
    return {"id": answer.call.id, "type": "function", "function": function}


def _envelope(answer: Answer, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": answer.id, "object": kind, "created": answer.created, "model": answer.model, "choices": choices}


def _delta(content: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": content, "finish_reason": finish_reason}
