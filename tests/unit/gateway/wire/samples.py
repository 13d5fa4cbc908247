"""Streams as the four providers send them, and what each must be read as."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import FORMATS, StreamMeter, WireFormat


@dataclass(frozen=True)
class Sample:
    """One stream."""

    format: str
    events: tuple[bytes, ...]
    usage: CallUsage
    finish_reason: str
    model: str
    seen: str
    """The text that the stream shows."""
    cost_usd: float | None = None

    @property
    def wire(self) -> WireFormat:
        return FORMATS[self.format]

    @property
    def stream(self) -> bytes:
        return b"".join(self.events)

    def metered(self) -> StreamMeter:
        meter = self.wire.meter()
        meter.feed(self.stream)
        meter.end()
        return meter


def event(content: dict[str, Any] | str, name: str = "", end: str = "\n") -> bytes:
    data = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    head = f"event: {name}{end}" if name else ""
    return f"{head}data: {data}{end}{end}".encode()


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return event({**_CHUNK, "choices": [choice], **more})


def typed(content: dict[str, Any]) -> bytes:
    return event(content, content["type"])


_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1763300000, "model": "gpt-5.2-2025-12-11"}
USAGE_CHUNK = event(
    {
        **_CHUNK,
        "choices": [],
        "usage": {
            "prompt_tokens": 1200,
            "completion_tokens": 90,
            "total_tokens": 1290,
            "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 64, "audio_tokens": 0},
        },
    }
)
CHAT = Sample(
    format="chat",
    events=(
        chunk({"role": "assistant", "content": "", "refusal": None}, usage=None),
        b": a comment that keeps the connection open\n\n",
        chunk({"content": "Grüße, "}, usage=None),
        chunk({"content": "世界"}, usage=None),
        chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "sh", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"command": "ls"}'}}]}),
        chunk({}, "tool_calls", usage=None),
        USAGE_CHUNK,
        event("[DONE]"),
    ),
    usage=CallUsage(input_tokens=1200, cached_tokens=1024, output_tokens=90, reasoning_tokens=64),
    finish_reason="tool_calls",
    model="gpt-5.2-2025-12-11",
    seen='Grüße, 世界{"command": "ls"}',
)
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1763300000,
    "model": "gpt-5.2",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "service_tier": "default",
}
RESPONSES = Sample(
    format="responses",
    events=(
        typed(
            {
                "type": "response.created",
                "sequence_number": 0,
                "response": {**_RESPONSE, "status": "in_progress", "usage": None},
            }
        ),
        typed(
            {
                "type": "response.output_text.delta",
                "sequence_number": 1,
                "item_id": "msg_1",
                "output_index": 0,
                "content_index": 0,
                "delta": "Hello",
                "obfuscation": "x7",
            }
        ),
        typed(
            {
                "type": "response.function_call_arguments.delta",
                "sequence_number": 2,
                "item_id": "fc_1",
                "output_index": 1,
                "delta": '{"a":1}',
            }
        ),
        typed(
            {
                "type": "response.completed",
                "sequence_number": 3,
                "response": {
                    **_RESPONSE,
                    "status": "completed",
                    "usage": {
                        "input_tokens": 300,
                        "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 10},
                        "output_tokens": 40,
                        "output_tokens_details": {"reasoning_tokens": 32},
                        "total_tokens": 340,
                    },
                },
            }
        ),
    ),
    usage=CallUsage(input_tokens=300, cached_tokens=256, cache_write_tokens=10, output_tokens=40, reasoning_tokens=32),
    finish_reason="completed",
    model="gpt-5.2",
    seen='Hello{"a":1}',
)
MESSAGES = Sample(
    format="messages",
    events=(
        typed(
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-opus-5",
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {
                        "input_tokens": 20,
                        "cache_read_input_tokens": 900,
                        "cache_creation_input_tokens": 80,
                        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 50},
                        "output_tokens": 1,
                        "service_tier": "standard",
                    },
                },
            }
        ),
        typed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        typed({"type": "ping"}),
        typed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Look: "}}),
        typed({"type": "content_block_stop", "index": 0}),
        typed(
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}},
            }
        ),
        typed(
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"command":"ls"}'},
            }
        ),
        typed({"type": "content_block_stop", "index": 1}),
        typed(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {"output_tokens": 77, "output_tokens_details": {"thinking_tokens": 12}},
            }
        ),
        typed({"type": "message_stop"}),
    ),
    usage=CallUsage(
        input_tokens=1000,
        cached_tokens=900,
        cache_write_tokens=80,
        long_cache_write_tokens=50,
        output_tokens=77,
        reasoning_tokens=12,
    ),
    finish_reason="tool_use",
    model="claude-opus-5",
    seen='Look: {"command":"ls"}',
)


def gemini_part(text: str, reason: str | None = None, **usage: int) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    content = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}
    return event(content, end="\r\n")


GEMINI = Sample(
    format="gemini",
    events=(
        gemini_part("One ", promptTokenCount=50, totalTokenCount=110, thoughtsTokenCount=60),
        gemini_part("two", promptTokenCount=50, candidatesTokenCount=1, totalTokenCount=111, thoughtsTokenCount=60),
        gemini_part(
            "",
            "STOP",
            promptTokenCount=50,
            cachedContentTokenCount=40,
            toolUsePromptTokenCount=7,
            candidatesTokenCount=3,
            thoughtsTokenCount=60,
            totalTokenCount=120,
        ),
    ),
    usage=CallUsage(input_tokens=57, cached_tokens=40, output_tokens=63, reasoning_tokens=60),
    finish_reason="STOP",
    model="gemini-2.5-pro",
    seen="One two",
)
SAMPLES = (CHAT, RESPONSES, MESSAGES, GEMINI)

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "Hi"}], "model": "gpt-5.2", "stream": True, "max_tokens": 500},
    ),
    "embeddings": ("/v1/embeddings", {"input": ["Hi"], "model": "text-embedding-3-small"}),
    "responses": (
        "/v1/responses",
        {"model": "gpt-5.2", "input": "Hi", "stream": True, "max_output_tokens": 500},
    ),
    "messages": (
        "/v1/messages",
        {"model": "claude-opus-5", "max_tokens": 500, "messages": [{"role": "user", "content": "Hi"}], "stream": True},
    ),
    "gemini": (
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 500}},
    ),
}
"""A path and a body for each format."""
