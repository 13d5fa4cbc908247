"""Anthropic's messages, which claude-code speaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, override

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import fields
from seatrial.gateway.wire.event_stream import event_text
from seatrial.gateway.wire.format import (
    REFUSAL_HEADERS,
    Answer,
    Body,
    CallRequest,
    Refusal,
    RefusalKind,
    WireFormat,
    clamped,
    opened,
    written,
)
from seatrial.gateway.wire.json_text import BadCall, Edit, JsonObject, read_answer_object
from seatrial.gateway.wire.meter import StreamMeter
from seatrial.gateway.wire.prompt_size import messages_parts, prompt_size
from seatrial.gateway.wire.reseller_fields import refuse_elsewhere, searches

_LEAST_THINKING = 1024
"""Anthropic refuses a lower budget for thinking, and one that is not below ``max_tokens``."""
_NAMES = (
    "model",
    "models",
    "stream",
    "max_tokens",
    "tools",
    "thinking",
    "service_tier",
    "speed",
    "fallbacks",
    "messages",
)
_LOCAL_TOOLS = ("bash_", "text_editor_", "computer_", "memory_", "custom")
"""Beginnings of the types of tools that the agent runs itself."""
_BESIDE = frozenset({"compaction", "advisor_message"})
"""Parts of a call whose tokens are not in its totals."""
_TOLD = (
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation", "output_tokens"),
    *("output_tokens_details", "iterations", "speed", "inference_geo", "cost", "cost_details", "is_byok"),
)
"""What is kept of a usage, so that a stream with ever new names cannot fill the memory."""
_ERRORS: dict[RefusalKind, tuple[int, str]] = {
    "over_budget": (400, "invalid_request_error"),
    "unknown_model": (404, "not_found_error"),
    "forbidden_path": (404, "not_found_error"),
    "too_large": (413, "request_too_large"),
    "upstream_away": (400, "api_error"),
    "bad_call": (400, "invalid_request_error"),
    "replay_miss": (404, "not_found_error"),
}
"""Without credit, Anthropic answers 400 with the words that ``refusal`` repeats."""


class MessagesFormat(WireFormat):
    name = "messages"

    @override
    def read_request(self, path: str, body: Body) -> CallRequest:
        read = opened(body)
        fields.check_names(read, _NAMES)
        fields.refuse_stored(read, "preset")
        refuse_elsewhere(read, known=("fallbacks",))
        counts, tools = self.counts(path), fields.tools(read)
        size = prompt_size(read, messages_parts)
        return CallRequest(
            model=fields.model_name(read.get("model")),
            streams=fields.flag(read, "stream"),
            max_output_tokens=fields.limit(read, "max_tokens") if counts else 0,
            input_tokens_estimate=size.tokens,
            format=self.name,
            least_output_tokens=1 if _thinking(read) is None else _LEAST_THINKING + 1,
            counts=counts,
            other_models=(*fields.model_names(read.get("models")), *_fallbacks(read), *fields.tool_models(tools)),
            provider_tools=(*_provider_tools(tools, read), *searches(read)),
            ways=fields.asked_ways(read, "speed", "inference_geo"),
            unsized=size.unknown,
        )

    @override
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        edits = clamped(body, "max_tokens", most)
        thinking = _thinking(body)
        if thinking is not None:
            edits += clamped(thinking, "budget_tokens", max(most - 1, _LEAST_THINKING))
        return edits

    @override
    def read_answer(self, body: bytes) -> Answer:
        content = read_answer_object(body) or {}
        usage = fields.inner(content, "usage") or content  # a count of tokens has no usage around it
        return Answer(
            usage=_usage(usage),
            finish_reason=fields.word(content.get("stop_reason")),
            cost_usd=fields.told_cost(usage),
            model=fields.word(content.get("model")),
            ways=_ways(usage),
            error=fields.error_text(content.get("error")),
        )

    @override
    def meter(self, *, tell_usage: bool = False) -> StreamMeter:
        return MessagesMeter(self.read_answer)

    @override
    def refusal(self, kind: RefusalKind, message: str) -> Refusal:
        status, type_ = _ERRORS[kind]
        if kind == "over_budget":
            message = f"Your credit balance is too low to access the Anthropic API. {message}"
        return status, REFUSAL_HEADERS, written(_error(type_, message))

    @override
    def models(self, names: list[str]) -> bytes:
        since = "2025-01-01T00:00:00Z"
        entries = [{"type": "model", "id": name, "display_name": name, "created_at": since} for name in names]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return written({"data": entries, "has_more": False, **ends})


class MessagesMeter(StreamMeter):
    def __init__(self, read_answer: Callable[[bytes], Answer]) -> None:
        super().__init__(read_answer)
        self._told: dict[str, Any] = {}
        """The usage as the provider reports it. A later event replaces single counts."""
        self._reason: str | None = None
        self._model: str | None = None
        self._begun = False
        self._block: int | None = None
        """The block of content that is still open."""

    @property
    @override
    def _told_all(self) -> bool:
        return self.ended or self._reason is not None

    @override
    def _told_answer(self) -> Answer:
        return Answer(
            self._usage, self._reason, fields.told_cost(self._told), self._model, _ways(self._told), self._error
        )

    @override
    def _read(self, name: str, content: dict[str, Any]) -> bool:
        match content.get("type"):
            case "message_start":
                message = fields.inner(content, "message")
                self._begun = True
                self._model = fields.word(message.get("model"))
                self._learn(fields.inner(message, "usage"))
            case "content_block_start":
                self._block = fields.count(content.get("index"))
            case "content_block_delta":
                delta = fields.inner(content, "delta")
                for piece in ("text", "thinking", "partial_json"):
                    self._saw(delta.get(piece))
            case "content_block_stop":
                self._block = None
            case "message_delta":
                self._reason = fields.word(fields.inner(content, "delta").get("stop_reason")) or self._reason
                self._learn(fields.inner(content, "usage"))
            case "message_stop":
                self.ended = True
            case "error":
                self._failed(content.get("error"))
        return True

    def _learn(self, usage: dict[str, Any]) -> None:
        self._told |= {name: usage[name] for name in _TOLD if usage.get(name) is not None}
        self._usage = _usage(self._told)

    @override
    def _closing(self, reason: str) -> bytes:
        if not self._begun:
            return self._failing(reason)
        events: list[dict[str, Any]] = []
        if self._block is not None:
            events.append({"type": "content_block_stop", "index": self._block})
        delta = {"stop_reason": "max_tokens", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.output_tokens_so_far}})
        events.append({"type": "message_stop"})
        return b"".join(event_text(json.dumps(event), event["type"]) for event in events)

    @override
    def _failing(self, reason: str) -> bytes:
        return event_text(json.dumps(_error("api_error", reason)), "error")


def _error(type_: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type_, "message": message}}


def _thinking(body: JsonObject) -> JsonObject | None:
    """The part that has a budget for thinking."""
    thinking = fields.part(body, "thinking")
    if thinking is not None:
        fields.check_names(thinking, ("type", "budget_tokens"))
    return thinking if thinking is not None and fields.limit(thinking, "budget_tokens") is not None else None


def _fallbacks(body: JsonObject) -> tuple[str, ...]:
    """Models that answer where the first one declines. Each may have its own limit, which would not be clamped."""
    value = body.get("fallbacks")
    if isinstance(value, list) and any(isinstance(each, dict) and set(each) - {"model"} for each in value):
        raise BadCall("A fallback has nothing but its model here.")
    return fields.model_names(value)


def _provider_tools(tools: list[dict[str, Any]], body: JsonObject) -> tuple[str, ...]:
    kinds = ["custom" if tool.get("type") is None else tool["type"] for tool in tools]
    if not all(isinstance(kind, str) for kind in kinds):
        raise BadCall("The type of a tool is not a text.")
    hosted = [kind[:50] for kind in kinds if not kind.startswith(_LOCAL_TOOLS)]
    return tuple(dict.fromkeys([*hosted, *(name for name in ("mcp_servers", "container") if body.get(name))]))


def _ways(usage: dict[str, Any]) -> tuple[str, ...]:
    """A service tier is not among them: Anthropic's are paid for in advance."""
    places = {"not_available", "global"}
    return tuple(way for way in fields.told_ways(usage.get("speed"), usage.get("inference_geo")) if way not in places)


def _usage(usage: dict[str, Any]) -> CallUsage:
    found = _one_usage(usage)
    for part in fields.items(usage.get("iterations")):
        if fields.word(part.get("type")) in _BESIDE:
            found = found.and_also(_one_usage(part))
    return found


def _one_usage(usage: dict[str, Any]) -> CallUsage:
    """Anthropic's ``input_tokens`` are those that no cache was used for."""
    plain, read, made = (usage.get(f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_"))
    return CallUsage(
        input_tokens=None if fields.count(plain) is None else fields.total(plain, read, made),
        cached_tokens=fields.count(read),
        cache_write_tokens=fields.count(made),
        long_cache_write_tokens=fields.count(fields.inner(usage, "cache_creation").get("ephemeral_1h_input_tokens")),
        output_tokens=fields.count(usage.get("output_tokens")),
        reasoning_tokens=fields.count(fields.inner(usage, "output_tokens_details").get("thinking_tokens")),
    )
