"""Gemini's generateContent and streamGenerateContent, which gemini-cli speaks.

The model is in the path. Google's servers accept two spellings of each name, ``generationConfig`` and
``generation_config``; both are read here.
"""

from __future__ import annotations

import json
import re
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
from seatrial.gateway.wire.prompt_size import gemini_parts, prompt_size

_CALL = re.compile(r"(?P<before>.*?models/)(?P<model>[^/:]+)(?P<verb>:[A-Za-z]+)")
_NAMES = ("model", "generationConfig", "contents", "systemInstruction", "tools", "cachedContent", "serviceTier")
_LIMIT, _CHOICES = "maxOutputTokens", "candidateCount"
_LOCAL_TOOLS = frozenset({"functionDeclarations", "function_declarations"})
_TOLD = (
    *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "candidatesTokenCount"),
    "thoughtsTokenCount",
)
_ERRORS: dict[RefusalKind, tuple[int, str]] = {
    "over_budget": (400, "FAILED_PRECONDITION"),
    "unknown_model": (404, "NOT_FOUND"),
    "forbidden_path": (404, "NOT_FOUND"),
    "too_large": (400, "INVALID_ARGUMENT"),
    "upstream_away": (400, "UNAVAILABLE"),
    "bad_call": (400, "INVALID_ARGUMENT"),
    "replay_miss": (404, "NOT_FOUND"),
}


class GeminiFormat(WireFormat):
    name = "gemini"

    @override
    def prepare_path(self, path: str, model: str) -> str:
        found = _CALL.fullmatch(path)
        return path if found is None else f"{found['before']}{model}{found['verb']}"

    @override
    def read_request(self, path: str, body: Body) -> CallRequest:
        read = opened(body)
        _check_spelling(read, _NAMES)
        found = _CALL.fullmatch(path)
        model = fields.model_name(found["model"] if found else None)
        named = read.get("model")
        if named is not None and named not in (model, f"models/{model}"):
            raise BadCall("The body names another model than the path.")
        config = _config(read)
        counts, size = self.counts(path), prompt_size(read, gemini_parts)
        cached = _spelled(read, "cachedContent")
        return CallRequest(
            model=model,
            streams=path.endswith(":streamGenerateContent"),
            max_output_tokens=0 if not counts else fields.limit(config, _spelled(config, _LIMIT)) if config else None,
            input_tokens_estimate=size.tokens,
            format=self.name,
            choices=fields.answers(config, _spelled(config, _CHOICES)) if config else 1,
            counts=counts,
            provider_tools=_provider_tools(fields.tools(read)),
            ways=fields.asked_ways(read, _spelled(read, "serviceTier")),
            unsized=(*(() if read.get(cached) is None else (cached,)), *size.unknown),
        )

    @override
    def _renamed(self, body: JsonObject, model: str) -> list[Edit]:
        return [] if body.get("model") is None else [body.replaced("model", f"models/{model}")]

    @override
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        config = _config(body)
        if config is None:
            member = body.members.get(_spelled(body, "generationConfig"))
            written_ = json.dumps({_LIMIT: most})
            return [Edit(member.start, member.end, written_) if member else body.added("generationConfig", written_)]
        of_each = max(most // fields.answers(config, _spelled(config, _CHOICES)), 1)
        return clamped(config, _spelled(config, _LIMIT), of_each)

    @override
    def read_answer(self, body: bytes) -> Answer:
        content = read_answer_object(body) or {}
        counted = CallUsage(input_tokens=fields.count(content.get("totalTokens")))  # the answer of countTokens
        usage = fields.inner(content, "usageMetadata")
        return Answer(
            usage=_usage(usage) if usage else counted,
            finish_reason=_reason(content),
            model=fields.word(content.get("modelVersion")),
            error=fields.error_text(content.get("error")),
        )

    @override
    def meter(self, *, tell_usage: bool = False) -> StreamMeter:
        return GeminiMeter(self.read_answer)

    @override
    def refusal(self, kind: RefusalKind, message: str) -> Refusal:
        status, word = _ERRORS[kind]
        if kind == "over_budget":
            message = f"You exceeded your current quota. {message}"
        return status, REFUSAL_HEADERS, written(_error(status, word, message))

    @override
    def models(self, names: list[str]) -> bytes:
        able = ["generateContent", "streamGenerateContent", "countTokens"]
        entries = [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": able} for name in names
        ]
        return written({"models": entries})


class GeminiMeter(StreamMeter):
    def __init__(self, read_answer: Callable[[bytes], Answer]) -> None:
        super().__init__(read_answer)
        self._told: dict[str, Any] = {}
        """The last reported usage. Each chunk reports that of the stream so far."""
        self._reason: str | None = None
        self._model: str | None = None

    @override
    def _told_answer(self) -> Answer:
        return Answer(_usage(self._told), self._reason, None, self._model, (), self._error)

    @property
    @override
    def output_tokens_so_far(self) -> int:
        return max(super().output_tokens_so_far, _usage(self._told).output_tokens or 0)

    @override
    def _read(self, name: str, content: dict[str, Any]) -> bool:
        usage = fields.inner(content, "usageMetadata")
        self._told |= {name: usage[name] for name in _TOLD if name in usage}
        self._reason = _reason(content) or self._reason
        self.ended = self._reason is not None
        self._model = self._model or fields.word(content.get("modelVersion"))
        if content.get("error"):
            self._failed(content["error"])
        for candidate in fields.items(content.get("candidates")):
            for part in fields.items(fields.inner(candidate, "content").get("parts")):
                self._saw(part.get("text"))
                if "functionCall" in part:
                    self._saw(json.dumps(part["functionCall"]))
        return True

    @override
    def _closing(self, reason: str) -> bytes:
        candidate = {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}
        return event_text(json.dumps({"candidates": [candidate]}))

    @override
    def _failing(self, reason: str) -> bytes:
        return event_text(json.dumps(_error(503, "UNAVAILABLE", reason)))


def _error(status: int, word: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": word}}


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _check_spelling(body: JsonObject, names: tuple[str, ...]) -> None:
    """``BadCall`` for a third spelling, or for two at once."""
    for name in names:
        spellings = {name, _snake(name)}
        meant = [each for each in body.members if each.replace("_", "").casefold() == name.casefold()]
        if len(meant) > 1 or not spellings.issuperset(meant):
            raise BadCall(f"{name!r} is written in another way, or twice.")


def _spelled(body: JsonObject, name: str) -> str:
    """The spelling of a name in this object."""
    return _snake(name) if _snake(name) in body.members else name


def _config(body: JsonObject) -> JsonObject | None:
    config = fields.part(body, _spelled(body, "generationConfig"))
    if config is not None:
        _check_spelling(config, (_LIMIT, _CHOICES))
    return config


def _provider_tools(tools: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name[:50] for tool in tools for name in tool if name not in _LOCAL_TOOLS))


def _reason(content: dict[str, Any]) -> str | None:
    reasons = [each.get("finishReason") for each in fields.items(content.get("candidates"))]
    reasons.append(fields.inner(content, "promptFeedback").get("blockReason"))
    return next((word for reason in reversed(reasons) if (word := fields.word(reason)) is not None), None)


def _usage(usage: dict[str, Any]) -> CallUsage:
    """Google leaves out counts that are zero. Thoughts are not in the count of the candidates."""
    prompt = fields.count(usage.get("promptTokenCount"))
    if prompt is None:
        return CallUsage()
    thoughts = fields.count(usage.get("thoughtsTokenCount")) or 0
    return CallUsage(
        input_tokens=fields.total(prompt, usage.get("toolUsePromptTokenCount")),
        cached_tokens=fields.count(usage.get("cachedContentTokenCount")),
        output_tokens=fields.total(usage.get("candidatesTokenCount"), thoughts),
        reasoning_tokens=thoughts,
    )
