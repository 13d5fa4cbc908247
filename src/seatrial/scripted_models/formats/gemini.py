"""Google's generateContent, which gemini-cli speaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from seatrial.scripted_models.answer import Answer, Asked
from seatrial.scripted_models.formats.format import event, pieces, tool_call, view_of
from seatrial.scripted_models.tools import Offered

_CALL = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)")
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class Gemini:
    """Implements ``Format``."""

    name: ClassVar[str] = "gemini"
    length_at: ClassVar[tuple[str, str] | None] = (":countTokens", "totalTokens")

    def serves(self, path: str) -> bool:
        return _CALL.fullmatch(path) is not None

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        found = _CALL.fullmatch(path)
        assert found is not None
        messages = [message for content in body["contents"] for message in _messages(content)]
        if body.get("systemInstruction"):
            messages.insert(0, {"role": "system", "content": _text(body["systemInstruction"].get("parts") or ())})
        declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
        offered = [
            Offered(str(one["name"]), one.get("parametersJsonSchema") or one.get("parameters") or {})
            for one in declared
        ]
        wanted = body.get("generationConfig") or {}
        is_json = wanted.get("responseMimeType") == "application/json"
        return Asked(
            model=found["model"],
            view=view_of(messages, offered),
            streams=found["verb"] == "streamGenerateContent",
            schema=wanted.get("responseJsonSchema") or wanted.get("responseSchema") or {} if is_json else None,
        )

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        return _response(answer, [{"text": answer.text}, *_call(answer)], "STOP")

    def events(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        for piece in pieces(answer.text):
            yield event(_response(answer, [{"text": piece}]))
        yield event(_response(answer, _call(answer) or [{"text": ""}], "STOP"))

    def error(self, status: int, message: str, kind: str, code: str | None = None) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "INTERNAL")}}


def _messages(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    parts = content.get("parts") or ()
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    if content.get("role") == "model":
        made = [tool_call(call["name"], call.get("args") or {}) for call in calls]
        yield {"role": "assistant", "content": _text(parts), **({"tool_calls": made} if made else {})}
        return
    results = any("functionResponse" in part for part in parts)
    yield {"role": "tool" if results else "user", "content": _text(parts)}


def _text(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_part_text(part) for part in parts if not part.get("thought"))


def _part_text(part: Mapping[str, Any]) -> str:
    if "functionResponse" not in part:
        return str(part.get("text", ""))
    told = part["functionResponse"].get("response") or {}
    output = told.get("output", told.get("result", told.get("error")))
    return output if isinstance(output, str) else json.dumps(told)


def _call(answer: Answer) -> list[dict[str, Any]]:
    if answer.call is None:
        return []
    return [{"functionCall": {"id": answer.call.id, "name": answer.call.name, "args": dict(answer.call.arguments)}}]


def _response(answer: Answer, parts: list[dict[str, Any]], finish_reason: str | None = None) -> dict[str, Any]:
    counted = answer.counted
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {
        "candidates": [candidate | ({"finishReason": finish_reason} if finish_reason else {})],
        "usageMetadata": {
            "promptTokenCount": counted.input_tokens,
            "cachedContentTokenCount": counted.cached_tokens,
            "candidatesTokenCount": counted.output_tokens,
            "totalTokenCount": counted.input_tokens + counted.output_tokens,
        },
        "modelVersion": answer.model,
        "responseId": answer.id,
    }
