"""Token ids and logprobs that a server gives with its answer, for training: OpenAI's ``logprobs``, vLLM's
``prompt_token_ids`` and ``token_ids`` (asked for with ``return_token_ids``). Streamed or not, they become the same."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Any, TypeGuard

MOST_TOKENS = 1_000_000
"""The most numbers that are kept of one call. No model's context, times its choices, is that long."""
_MOST_CHOICES = 128
_LARGEST_ID = 2**31 - 1


@dataclass(slots=True)
class ChoiceTokens:
    """Of one choice. Each is empty if the server did not give it."""

    index: int
    completion_token_ids: array[int] = field(default_factory=lambda: array("q"))
    logprobs: array[float] = field(default_factory=lambda: array("d"))
    """Of the generated tokens, in their order."""


@dataclass(slots=True)
class AnswerTokens:
    """Of one answer. Compact, and bounded: a server may send anything."""

    prompt_token_ids: array[int] = field(default_factory=lambda: array("q"))
    choices: dict[int, ChoiceTokens] = field(default_factory=dict)
    is_whole: bool = True
    """Whether nothing had to be left out."""
    _left: int = MOST_TOKENS

    def __bool__(self) -> bool:
        return bool(self.prompt_token_ids) or any(each.completion_token_ids or each.logprobs for each in self._each())

    def saw(self, content: dict[str, Any]) -> None:
        """Adds a whole answer, or a chunk of a stream."""
        prompt = content.get("prompt_token_ids")
        if prompt and not self.prompt_token_ids:
            self._extend(self.prompt_token_ids, prompt)
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and (choice.get("token_ids") or choice.get("logprobs")):
                self._saw_choice(choice)

    def told(self) -> dict[str, Any]:
        """As it is written. The names are those of Harbor's rollout details."""
        shared = {"prompt_token_ids": self.prompt_token_ids.tolist()} if self.prompt_token_ids else {}
        return {**shared, "choices": [_told(each) for each in sorted(self._each(), key=lambda each: each.index)]}

    def _each(self) -> list[ChoiceTokens]:
        return list(self.choices.values())

    def _saw_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        place = index if isinstance(index, int) and 0 <= index < _MOST_CHOICES else 0
        kept = self.choices.setdefault(place, ChoiceTokens(place))
        self._extend(kept.completion_token_ids, choice.get("token_ids"))
        logprobs = choice.get("logprobs")
        content = logprobs.get("content") if isinstance(logprobs, dict) else None
        for each in content if isinstance(content, list) else ():
            value = each.get("logprob") if isinstance(each, dict) else None
            if not _is_logprob(value) or self._left <= 0:
                self.is_whole = False
                return
            kept.logprobs.append(float(value))
            self._left -= 1

    def _extend(self, ids: array[int], given: Any) -> None:
        """All of them or none: a gap would shift the rest."""
        if not given:
            return
        if not isinstance(given, list) or len(given) > self._left or not all(_is_id(each) for each in given):
            self.is_whole = False
            return
        ids.extend(given)
        self._left -= len(given)


def _told(choice: ChoiceTokens) -> dict[str, Any]:
    given = {"completion_token_ids": choice.completion_token_ids.tolist(), "logprobs": choice.logprobs.tolist()}
    return {"index": choice.index, **{name: values for name, values in given.items() if values}}


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_ID


def _is_logprob(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
