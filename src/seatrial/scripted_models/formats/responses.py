"""OpenAI's responses, which codex speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, ClassVar

from seatrial.scripted_models.answer import Answer, Asked
from seatrial.scripted_models.formats.format import event, pieces, tool_call, view_of
from seatrial.scripted_models.tools import Offered


class Responses:
    """Implements ``Format``."""

    name: ClassVar[str] = "responses"
    length_at: ClassVar[tuple[str, str] | None] = None

    def serves(self, path: str) -> bool:
        return path == "/responses"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        messages = [message for item in items if (message := _message(item)) is not None]
        if body.get("instructions"):
            messages.insert(0, {"role": "system", "content": str(body["instructions"])})
        functions = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
        offered = [Offered(str(tool["name"]), tool.get("parameters") or {}) for tool in functions]
        wanted = ((body.get("text") or {}).get("format")) or {}
        return Asked(
            model=str(body["model"]),
            view=view_of(messages, offered),
            streams=bool(body.get("stream")),
            schema=wanted.get("schema") or {} if wanted.get("type") == "json_schema" else None,
        )

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        return _response(answer, "completed", _items(answer)) | {"usage": _usage(answer)}

    def events(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        numbers = count()

        def told(kind: str, **content: Any) -> bytes:
            return event({"type": kind, "sequence_number": next(numbers), **content}, kind)

        for kind in ("response.created", "response.in_progress"):
            yield told(kind, response=_response(answer, "in_progress", []))
        for index, item in enumerate(_items(answer)):
            place = {"output_index": index, "item_id": item["id"]}
            emptied: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
            yield told("response.output_item.added", output_index=index, item={**item, **emptied})
            if item["type"] == "message":
                part = {**place, "content_index": 0}
                for piece in pieces(answer.text):
                    yield told("response.output_text.delta", **part, delta=piece)
                yield told("response.output_text.done", **part, text=answer.text)
            else:
                yield told("response.function_call_arguments.delta", **place, delta=item["arguments"])
                yield told("response.function_call_arguments.done", **place, arguments=item["arguments"])
            yield told("response.output_item.done", output_index=index, item=item)
        yield told("response.completed", response=self.whole(answer, asked))

    def error(self, status: int, message: str, kind: str, code: str | None = None) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    match item.get("type", "message"):
        case "message":
            role = "system" if item["role"] == "developer" else item["role"]
            return {"role": role, "content": item["content"]}
        case "function_call":
            return {"role": "assistant", "content": "", "tool_calls": [tool_call(item["name"], item["arguments"])]}
        case "function_call_output":
            return {"role": "tool", "content": item["output"]}
        case _:  # reasoning, and tools that are never called here
            return None


def _items(answer: Answer) -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": answer.text, "annotations": []}
    said = {"id": f"msg-{answer.id}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    if answer.call is None:
        return [said]
    call = {
        "id": f"fc-{answer.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": answer.call.id,
        "name": answer.call.name,
        "arguments": json.dumps(answer.call.arguments),
    }
    return [said, call]


def _response(answer: Answer, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp-{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "model": answer.model,
        "status": status,
        "output": output,
        "parallel_tool_calls": False,
        "tools": [],
    }


def _usage(answer: Answer) -> dict[str, Any]:
    counted = answer.counted
    return {
        "input_tokens": counted.input_tokens,
        "input_tokens_details": {"cached_tokens": counted.cached_tokens},
        "output_tokens": counted.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counted.input_tokens + counted.output_tokens,
    }
