"""What the gateway asks of a wire format: pure functions over bytes, without input or output.

A body may be passed as bytes or as the ``JsonObject`` that ``read_object`` made of them. So the gateway reads it once
for ``read_request``, ``digest_of`` and ``prepare``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import fields
from seatrial.gateway.wire.json_text import Edit, JsonObject, edited, read_object
from seatrial.gateway.wire.meter import StreamMeter
from seatrial.gateway.wire.replay import digest_of
from seatrial.gateway.wire.tokens import AnswerTokens

Body = bytes | JsonObject
RefusalKind = Literal[
    "over_budget", "unknown_model", "forbidden_path", "too_large", "upstream_away", "bad_call", "replay_miss"
]
Refusal = tuple[int, tuple[tuple[str, str], ...], bytes]
"""Status, headers and body."""

REFUSAL_HEADERS = (("content-type", "application/json"), ("x-should-retry", "false"))
"""The clients of OpenAI and Anthropic obey the second one."""
_NOT_TOLD = CallUsage()


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What the gateway must know about a request before it forwards it."""

    model: str
    streams: bool
    max_output_tokens: int | None
    """For each of the ``choices``. ``None``: as many as the model gives."""
    input_tokens_estimate: int
    format: str
    choices: int = 1
    """Answers that are asked for, each with its own length."""
    least_output_tokens: int = 1
    """A request that is clamped to fewer than this is refused by the provider."""
    tells_usage: bool = True
    """Whether the answer tells its usage without ``tell_usage``."""
    counts: bool = True
    """``False``: the provider only counts tokens, which is free."""
    other_models: tuple[str, ...] = ()
    """Further models that the provider may use for this request. The trial must be allowed to use each."""
    provider_tools: tuple[str, ...] = ()
    """Tools that run at the provider: they cost extra, and some reach the internet for the sandbox."""
    ways: tuple[str, ...] = ()
    """Service tier, speed and region that are asked for. Each may have another price."""
    unsized: tuple[str, ...] = ()
    """What belongs to the prompt and is not in the request: an earlier conversation, a file by its id or address. It
    may have any length."""

    @property
    def most_output_tokens(self) -> int | None:
        """Of all answers together."""
        return None if self.max_output_tokens is None else self.max_output_tokens * self.choices


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer tells. All of it is ``None`` or empty if the answer cannot be read."""

    usage: CallUsage = _NOT_TOLD
    finish_reason: str | None = None
    """In the provider's words."""
    cost_usd: float | None = None
    """The provider's own figure."""
    model: str | None = None
    """The model that the provider says it used."""
    ways: tuple[str, ...] = ()
    """Service tier, speed and region that were used; for the price."""
    error: str | None = None
    tokens: AnswerTokens | None = None
    """Token ids and logprobs; ``None`` if the server gave none."""


class WireFormat(ABC):
    """One way in which agents speak to models."""

    name: str

    def counts(self, path: str) -> bool:
        """Whether the call at this path is one that costs. The others only count tokens."""
        return not path.endswith(("/count_tokens", ":countTokens", "/input_tokens"))

    def prepare_path(self, path: str, model: str) -> str:
        """The path with another model in it, if this format has it there."""
        return path

    @abstractmethod
    def read_request(self, path: str, body: Body) -> CallRequest:
        """``BadCall`` if it could be read in two ways, or if its use could not be counted."""

    def prepare(
        self, body: Body, *, model: str, max_output_tokens: int | None = None, tell_usage: bool = False
    ) -> bytes:
        """The body to forward, byte for byte the same if nothing changes.

        ``max_output_tokens``: the most that all answers together may have; a lower limit of the request stays.
        ``tell_usage``: ask for the usage of a stream. A stream that tells it anyway is not changed."""
        read = opened(body)
        edits = self._renamed(read, model)
        if max_output_tokens is not None:
            edits += self._clamped(read, max_output_tokens)
        if tell_usage:
            edits += self._asking(read)
        if not edits and isinstance(body, bytes):
            return body
        return edited(read.text, edits)

    def digest_of(self, body: Body) -> str:
        """Of the request without its volatile parts, for replay."""
        return digest_of(opened(body))

    @abstractmethod
    def read_answer(self, body: bytes) -> Answer:
        """A whole answer, also one with an error. Raises nothing."""

    @abstractmethod
    def meter(self, *, tell_usage: bool = False) -> StreamMeter:
        """For one stream. ``tell_usage``: ``prepare`` asked for the usage and the agent did not; take it out again."""

    @abstractmethod
    def refusal(self, kind: RefusalKind, message: str) -> Refusal:
        """An answer in the provider's own shape. It makes the provider's clients stop, not try again."""

    @abstractmethod
    def models(self, names: list[str]) -> bytes:
        """The answer to a question for the list of models."""

    def _renamed(self, body: JsonObject, model: str) -> list[Edit]:
        return [] if body.get("model") == model else [body.replaced("model", model)]

    @abstractmethod
    def _clamped(self, body: JsonObject, most: int) -> list[Edit]:
        """Lowers the limits of length, so that all answers together have at most this many tokens."""

    def _asking(self, body: JsonObject) -> list[Edit]:
        return []


def opened(body: Body) -> JsonObject:
    return body if isinstance(body, JsonObject) else read_object(body)


def clamped(body: JsonObject, name: str, most: int) -> list[Edit]:
    """Lowers a length limit, or sets it where there is none."""
    present = fields.limit(body, name)
    return [] if present is not None and present <= most else [body.replaced(name, most)]


def written(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()
