"""OpenAI's chat completions and embeddings, which most other providers speak too."""

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
from seatrial.gateway.wire.json_text import Edit, JsonObject, read_answer_object
from seatrial.gateway.wire.meter import StreamMeter
from seatrial.gateway.wire.openai_shapes import openai_models, openai_refusal, provider_tools
from seatrial.gateway.wire.prompt_size import chat_parts, no_parts, prompt_size
from seatrial.gateway.wire.reseller_fields import refuse_elsewhere, searches
from seatrial.gateway.wire.tokens import AnswerTokens

_LIMITS = ("max_completion_tokens", "max_tokens")
"""The first is added where a request has none: OpenAI's newer models refuse the second."""
_NAMES = ("model", "models", "stream", "stream_options", "n", "tools", "service_tier", "messages", "preset", *_LIMITS)
_MOST_CHOICES = 128


class ChatFormat(WireFormat):
    name = "chat"

    @override
    def read_request(self, path: str, body: Body) -> CallRequest:
        read = opened(body)
        fields.check_names(read, _NAMES)
        fields.refuse_stored(read, "preset")
        refuse_elsewhere(read)
        streams = fields.flag(read, "stream")
        limits = [limit for name in _LIMITS if (limit := fields.limit(read, name)) is not None]
        options = fields.part(read, "stream_options")
        if options is not None:
            fields.check_names(options, ("include_usage",))
        size = prompt_size(read, chat_parts)
        return CallRequest(
            model=fields.model_name(read.get("model")),
            streams=streams,
            max_output_tokens=max(limits, default=None),
            input_tokens_estimate=size.tokens,
            format=self.name,
            choices=fields.answers(read, "n"),
            tells_usage=not streams or (options is not None and fields.flag(options, "include_usage")),
            other_models=fields.model_names(read.get("models")),
            provider_tools=(*provider_tools(fields.tools(read)), *searches(read)),
            ways=fields.asked_ways(read, "service_tier"),
            unsized=size.unknown,
        )

    @override
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        of_each = max(most // fields.answers(body, "n"), 1)
        present = [name for name in _LIMITS if body.get(name) is not None] or [_LIMITS[0]]
        return [edit for name in present for edit in clamped(body, name, of_each)]

    @override
    def _asking(self, body: JsonObject) -> list[Edit]:
        if not fields.flag(body, "stream"):
            return []
        options = fields.part(body, "stream_options")
        if options is None:
            member = body.members.get("stream_options")
            wanted = '{"include_usage":true}'
            return [Edit(member.start, member.end, wanted) if member else body.added("stream_options", wanted)]
        if fields.flag(options, "include_usage"):
            return []
        member = options.members.get("include_usage")
        return [Edit(member.start, member.end, "true") if member else options.added("include_usage", "true")]

    @override
    def read_answer(self, body: bytes) -> Answer:
        return _answer(read_answer_object(body) or {})

    @override
    def meter(self, *, tell_usage: bool = False) -> StreamMeter:
        return ChatMeter(self.read_answer, tell_usage)

    @override
    def refusal(self, kind: RefusalKind, message: str) -> Refusal:
        return openai_refusal(kind, message)

    @override
    def models(self, names: list[str]) -> bytes:
        return openai_models(names)


class EmbeddingsFormat(ChatFormat):
    name = "embeddings"

    @override
    def read_request(self, path: str, body: Body) -> CallRequest:
        read = opened(body)
        fields.check_names(read, ("model", "models", "input"))
        refuse_elsewhere(read)
        return CallRequest(
            model=fields.model_name(read.get("model")),
            streams=False,
            max_output_tokens=0,
            input_tokens_estimate=prompt_size(read, no_parts).tokens,
            format=self.name,
            other_models=fields.model_names(read.get("models")),
        )

    @override
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        return []

    @override
    def _asking(self, body: JsonObject) -> list[Edit]:
        return []


class ChatMeter(StreamMeter):
    def __init__(self, read_answer: Callable[[bytes], Answer], tell_usage: bool) -> None:
        super().__init__(read_answer)
        self._takes_usage_out = tell_usage
        self._told: dict[str, Any] = {}
        """The last reported usage."""
        self._usage_is_last = False
        """It was reported when all choices had ended. Some servers report one with each piece."""
        self._reason: str | None = None
        self._ways: tuple[str, ...] = ()
        self._head: dict[str, Any] = {}
        self._open: dict[int, bool] = {}
        """Choices by their index, and whether each still grows."""
        self._tokens = AnswerTokens()

    @property
    @override
    def _told_all(self) -> bool:
        return self.ended or self._usage_is_last

    @override
    def _told_answer(self) -> Answer:
        model = fields.word(self._head.get("model"))
        cost, tokens = fields.told_cost(self._told), self._tokens or None
        return Answer(self._usage, self._reason, cost, model, self._ways, self._error, tokens)

    @override
    def _read(self, name: str, content: dict[str, Any]) -> bool:
        usage = fields.inner(content, "usage")
        if usage:
            self._told = usage
            self._usage = self._usage.updated_by(_usage(usage))
        if content.get("error"):
            self._failed(content["error"])
        if not self._head:
            self._head = {name: content.get(name) for name in ("id", "created", "model") if fields.short(content, name)}
        if content.get("service_tier"):
            self._ways = fields.told_ways(content["service_tier"])
        self._tokens.saw(content)
        choices = content.get("choices")
        for choice in fields.items(choices):
            self._saw_choice(choice)
        if usage:
            self._usage_is_last = self._reason is not None and not any(self._open.values())
        return not (self._takes_usage_out and usage and choices == [])

    def _saw_choice(self, choice: dict[str, Any]) -> None:
        reason = fields.word(choice.get("finish_reason"))
        self._reason = reason or self._reason
        index = fields.count(choice.get("index")) or 0
        if index in self._open or len(self._open) < _MOST_CHOICES:
            self._open[index] = reason is None
        delta = fields.inner(choice, "delta")
        for name in ("content", "refusal", "reasoning", "reasoning_content"):
            self._saw(delta.get(name))
        for call in fields.items(delta.get("tool_calls")):
            self._saw(fields.inner(call, "function").get("arguments"))

    @override
    def _closing(self, reason: str) -> bytes:
        indexes = [index for index, growing in self._open.items() if growing] or ([] if self._open else [0])
        choices = [{"index": index, "delta": {}, "finish_reason": "length"} for index in indexes]
        chunk = {"id": "cut", "object": "chat.completion.chunk", "created": 0, "model": "", **self._head}
        return event_text(json.dumps({**chunk, "choices": choices})) + event_text("[DONE]")

    @override
    def _failing(self, reason: str) -> bytes:
        error = {"message": reason, "type": "server_error", "param": None, "code": "server_error"}
        return event_text(json.dumps({"error": error})) + event_text("[DONE]")


def _answer(content: dict[str, Any]) -> Answer:
    """A whole answer or a chunk of one."""
    reasons = [
        word for choice in fields.items(content.get("choices")) if (word := fields.word(choice.get("finish_reason")))
    ]
    usage, tokens = fields.inner(content, "usage"), AnswerTokens()
    tokens.saw(content)
    return Answer(
        usage=_usage(usage),
        finish_reason=reasons[-1] if reasons else None,
        cost_usd=fields.told_cost(usage),
        model=fields.word(content.get("model")),
        ways=fields.told_ways(content.get("service_tier")),
        error=fields.error_text(content.get("error")),
        tokens=tokens or None,
    )


def _usage(usage: dict[str, Any]) -> CallUsage:
    """Some providers leave reasoning out of ``completion_tokens`` and have it in ``total_tokens`` only."""
    prompt, whole = fields.count(usage.get("prompt_tokens")), fields.count(usage.get("total_tokens"))
    made = fields.count(usage.get("completion_tokens"))
    if prompt is not None and whole is not None:
        made = max(made or 0, whole - prompt)
    details = fields.inner(usage, "prompt_tokens_details")
    hits = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cache_read_input_tokens"))
    writes = (details.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    return CallUsage(
        input_tokens=prompt,
        cached_tokens=first(hits),
        cache_write_tokens=first(writes),
        output_tokens=made,
        reasoning_tokens=fields.count(fields.inner(usage, "completion_tokens_details").get("reasoning_tokens")),
    )


def first(values: tuple[Any, ...]) -> int | None:
    """The first that is a number of tokens."""
    return next((number for value in values if (number := fields.count(value)) is not None), None)
