"""OpenAI's responses, which codex speaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, override

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import fields
from seatrial.gateway.wire.event_stream import event_text
from seatrial.gateway.wire.format import (
    Answer,
    Body,
    CallRequest,
    Refusal,
    RefusalKind,
    WireFormat,
    clamped,
    opened,
)
from seatrial.gateway.wire.json_text import BadCall, Edit, JsonObject, read_answer_object
from seatrial.gateway.wire.meter import StreamMeter
from seatrial.gateway.wire.openai_shapes import openai_models, openai_refusal, provider_tools
from seatrial.gateway.wire.prompt_size import prompt_size, responses_parts
from seatrial.gateway.wire.reseller_fields import refuse_elsewhere, searches

LEAST_OUTPUT_TOKENS = 16
"""OpenAI refuses a lower limit."""
_STORED = ("previous_response_id", "conversation")
"""What the provider puts before the prompt."""
_NAMES = (
    "model",
    "models",
    "stream",
    "background",
    "max_output_tokens",
    "tools",
    "service_tier",
    "input",
    "prompt",
    "preset",
    *_STORED,
)
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesFormat(WireFormat):
    name = "responses"

    @override
    def read_request(self, path: str, body: Body) -> CallRequest:
        read = opened(body)
        fields.check_names(read, _NAMES)
        if fields.flag(read, "background"):
            raise BadCall("A response in the background does not report what it used. Ask for it without 'background'.")
        fields.refuse_stored(read, "prompt", "preset")
        refuse_elsewhere(read)
        counts = self.counts(path)
        tools, size = fields.tools(read), prompt_size(read, responses_parts)
        stored = [name for name in _STORED if read.get(name) is not None]
        return CallRequest(
            model=fields.model_name(read.get("model")),
            streams=fields.flag(read, "stream"),
            max_output_tokens=fields.limit(read, "max_output_tokens") if counts else 0,
            input_tokens_estimate=size.tokens,
            format=self.name,
            least_output_tokens=LEAST_OUTPUT_TOKENS,
            counts=counts,
            other_models=(*fields.model_names(read.get("models")), *fields.tool_models(tools)),
            provider_tools=(*provider_tools(tools), *searches(read)),
            ways=fields.asked_ways(read, "service_tier"),
            unsized=(*stored, *size.unknown),
        )

    @override
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        return clamped(body, "max_output_tokens", max(most, LEAST_OUTPUT_TOKENS))

    @override
    def read_answer(self, body: bytes) -> Answer:
        return _answer(read_answer_object(body) or {})

    @override
    def meter(self, *, tell_usage: bool = False) -> StreamMeter:
        return ResponsesMeter(self.read_answer)

    @override
    def refusal(self, kind: RefusalKind, message: str) -> Refusal:
        return openai_refusal(kind, message, status=400)  # codex tries every other one again, five times

    @override
    def models(self, names: list[str]) -> bytes:
        return openai_models(names)


class ResponsesMeter(StreamMeter):
    def __init__(self, read_answer: Callable[[bytes], Answer]) -> None:
        super().__init__(read_answer)
        self._answer = Answer()
        self._head: dict[str, Any] = {}
        self._sequence = 0

    @override
    def _told_answer(self) -> Answer:
        told = self._answer
        return Answer(self._usage, told.finish_reason, told.cost_usd, told.model, told.ways, self._error or told.error)

    @override
    def _read(self, name: str, content: dict[str, Any]) -> bool:
        kind = fields.word(content.get("type")) or ""
        self._sequence = fields.count(content.get("sequence_number")) or self._sequence
        response = content.get("response")
        if response and isinstance(response, dict):
            self._head = self._head or {
                name: response.get(name) for name in ("id", "created_at", "model") if fields.short(response, name)
            }
            self._answer = _answer(response)
            self._usage = self._usage.updated_by(self._answer.usage)
        if kind in _LAST:
            self.ended = True
        elif kind == "error":
            self._failed(content.get("error") or content)
        elif kind.endswith(".delta") and "audio" not in kind:
            self._saw(content.get("delta"))
        return True

    @override
    def _closing(self, reason: str) -> bytes:
        return self._last("response.incomplete", {"incomplete_details": {"reason": "max_output_tokens"}})

    @override
    def _failing(self, reason: str) -> bytes:
        return self._last("response.failed", {"error": {"code": "server_error", "message": reason}})

    def _last(self, kind: str, why: dict[str, Any]) -> bytes:
        made = self.output_tokens_so_far
        usage = {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": made,
        }
        response = {
            "id": "cut",
            "object": "response",
            "created_at": 0,
            "model": "",
            **self._head,
            "status": kind.removeprefix("response."),
            "error": None,
            "incomplete_details": None,
            **why,
            "instructions": None,
            "metadata": {},
            "output": [],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": usage,
        }
        event = {"type": kind, "sequence_number": self._sequence + 1, "response": response}
        return event_text(json.dumps(event), kind)


def _answer(response: dict[str, Any]) -> Answer:
    usage = fields.inner(response, "usage")
    read, made = fields.inner(usage, "input_tokens_details"), fields.inner(usage, "output_tokens_details")
    reason = fields.inner(response, "incomplete_details").get("reason") or response.get("status")
    return Answer(
        usage=CallUsage(
            input_tokens=fields.count(usage.get("input_tokens")),
            cached_tokens=fields.count(read.get("cached_tokens")),
            cache_write_tokens=fields.count(read.get("cache_write_tokens")),
            output_tokens=fields.count(usage.get("output_tokens")),
            reasoning_tokens=fields.count(made.get("reasoning_tokens")),
        ),
        finish_reason=fields.word(reason),
        cost_usd=fields.told_cost(usage),
        model=fields.word(response.get("model")),
        ways=fields.told_ways(response.get("service_tier")),
        error=fields.error_text(response.get("error")),
    )
