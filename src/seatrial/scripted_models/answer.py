"""What an agent asked, and what a scripted model answers, whatever the wire format of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from seatrial.scripted_models.scripts import View

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of one or many answers. The cached ones are part of the input."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Self) -> Counted:
        return Counted(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as its format was read."""

    model: str
    view: View
    streams: bool = False
    tells_usage: bool = True
    """Whether a stream ends with its usage."""
    schema: Mapping[str, Any] | None = None
    """The answer must be JSON of this schema."""
    for_terminal: bool = False
    """An agent without tools reads commands from the text of the answer."""
    caches: bool = True
    """Whether the part of the prompt that was there before counts as cached."""
    logprobs: bool = False
    token_ids: bool = False
    """Whether the answer is to have the ids of its tokens, as vLLM gives them."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    id: str
    model: str
    text: str
    call: ToolCall | None
    counted: Counted
    created: int


def tokens_of(characters: int) -> int:
    return max(characters // CHARS_PER_TOKEN, 1)
