"""One call of a model as the gateway saw it, and the sums over many: a line of a trial's ``calls.jsonl``.

Token counts of all providers are kept in one way, whatever each of them adds up: ``input_tokens`` is the whole prompt
with its cached part, ``output_tokens`` everything that was generated with its reasoning. So no reader has to know which
provider reported a number.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import Usage

CALLS_FILE = "calls.jsonl"
"""In a try's files: one line for each call."""
Count = int | None


class CostBy(StrEnum):
    """Who named the price of a call."""

    PROVIDER = "provider"
    """The provider's answer contains it."""
    TABLE = "table"
    """LiteLLM's list of prices."""
    OPERATOR = "operator"
    """The operator's own list of prices."""


class CallUsage(Frozen):
    """Tokens by kind. ``None``: the provider did not tell."""

    input_tokens: Count = Field(default=None, ge=0)
    """The whole prompt, with what was read from and written to a cache."""
    cached_tokens: Count = Field(default=None, ge=0)
    """Part of the prompt: read from a cache."""
    cache_write_tokens: Count = Field(default=None, ge=0)
    """Part of the prompt: written to a cache."""
    long_cache_write_tokens: Count = Field(default=None, ge=0)
    """Part of ``cache_write_tokens``: kept for an hour, which costs more."""
    output_tokens: Count = Field(default=None, ge=0)
    """Everything that was generated, with reasoning that the answer does not show."""
    reasoning_tokens: Count = Field(default=None, ge=0)
    """Part of the output: reasoning."""

    @property
    def is_known(self) -> bool:
        """Whether the provider told enough to know what a call cost."""
        return self.input_tokens is not None and self.output_tokens is not None

    @property
    def total(self) -> int:
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def and_also(self, other: CallUsage) -> CallUsage:
        mine, theirs = self.__dict__, other.__dict__
        return CallUsage(**{name: _sum(mine[name], theirs[name]) for name in CallUsage.model_fields})

    def updated_by(self, later: CallUsage) -> CallUsage:
        """Counts of the same call that were told later. They are totals so far and replace the earlier ones."""
        return self.model_copy(update={name: value for name, value in later.__dict__.items() if value is not None})


class ModelCall(Frozen):
    """One call that an agent made. It may have taken several requests (``tries``)."""

    at: datetime
    """When the agent asked."""
    model: str
    provider: str = ""
    format: str
    """The wire format: ``chat``, ``embeddings``, ``responses``, ``messages`` or ``gemini``."""
    status: int | None = None
    """The provider's HTTP status. ``None``: it did not answer, or the gateway refused the call itself."""
    tries: int = Field(default=1, ge=0)
    """Requests to the provider. 0: the gateway refused the call itself."""
    lost_tries: int = Field(default=0, ge=0)
    """Those of ``tries`` that were sent, and whose answer was lost. The provider may have counted them, so budgets
    count each at its expected price. ``usage`` and ``cost_usd`` do not have them."""
    waited_sec: float = Field(default=0.0, ge=0)
    """Seconds spent waiting for the provider's rate limits and outages."""
    first_token_sec: float | None = Field(default=None, ge=0)
    """Seconds from the request to the first piece of the answer."""
    seconds: float = Field(default=0.0, ge=0)
    """Seconds from the agent's request to the end of the answer."""
    usage: CallUsage = CallUsage()
    cost_usd: float | None = Field(default=None, ge=0)
    cost_by: CostBy | None = None
    finish_reason: str | None = None
    """In the provider's words."""
    request_digest: str | None = None
    """Of the request without its volatile parts: equal requests have equal digests. Only of trials that are recorded or
    replayed, because it takes longer than all else that the gate does."""
    clamped_to: int | None = Field(default=None, ge=0)
    """The output tokens that the budget left for this call, if it asked for more."""
    streamed: bool = False
    over_budget: bool = False
    """The call was refused or its stream was cut, because a budget was used up."""
    error: str | None = None
    recorded: bool | None = None
    """Whether its bodies were kept. ``False``: the trial's record was full. ``None``: no record was requested."""
    tokens_kept: bool | None = None
    """Whether the token ids and logprobs of its answer were kept. ``None``: the answer had none."""
    replayed: bool = False
    """The record of another trial answered it. It cost nothing, and ``tries`` is 0."""
    saved_usd: float | None = Field(default=None, ge=0)
    """What a replayed call would have cost."""


class CallSums(Frozen):
    """The sums over the calls of a try."""

    calls: int = 0
    refused: int = 0
    """Further calls, which the gateway did not forward."""
    tries: int = 0
    waited_sec: float = 0.0
    usage: CallUsage = CallUsage()
    cost_usd: float | None = None
    """Over the calls whose cost is known. ``None`` if no cost is known."""
    without_cost: int = 0
    """Calls that were forwarded and whose cost is not known."""
    over_budget: bool = False
    replayed: int = 0
    """Those of the calls that a record answered."""
    saved_usd: float | None = None
    """What those would have cost. ``None`` if no cost is known."""

    def and_also(self, call: ModelCall) -> CallSums:
        forwarded = call.tries > 0
        made = forwarded or call.replayed
        return CallSums(
            calls=self.calls + made,
            refused=self.refused + (not made),
            replayed=self.replayed + call.replayed,
            saved_usd=_sum(self.saved_usd, call.saved_usd),
            tries=self.tries + call.tries,
            waited_sec=self.waited_sec + call.waited_sec,
            usage=self.usage.and_also(call.usage),
            cost_usd=_sum(self.cost_usd, call.cost_usd),
            without_cost=self.without_cost + (forwarded and call.cost_usd is None),
            over_budget=self.over_budget or call.over_budget,
        )

    @property
    def result_usage(self) -> Usage:
        """The same as a trial's result shows it. ``turns`` is the agent's to tell."""
        return Usage(
            input_tokens=self.usage.input_tokens,
            cached_tokens=self.usage.cached_tokens,
            output_tokens=self.usage.output_tokens,
            cost_usd=self.cost_usd,
            model_calls=self.calls,
        )


def _sum[Number: (int, float)](one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
