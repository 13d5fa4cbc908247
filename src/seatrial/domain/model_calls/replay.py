"""Replay: a trial whose model calls are answered from the record of an earlier trial."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.numbers import LARGEST_ID

RECORD_FILE = "calls-full.jsonl"
"""The file of a try that holds the bodies of its calls."""
TOKENS_FILE = "calls-tokens.jsonl"
"""The file of a try that holds the token ids and logprobs of its answers."""


class Replay(Frozen):
    """What a job replays."""

    model_config = ConfigDict(extra="forbid")

    trial: int = Field(ge=1, le=LARGEST_ID)
    """The trial whose record answers. It was run with the record ``full``."""
    miss: ReplayMiss = ReplayMiss.ERROR
    """What a request gets that the record does not have."""

    @property
    def calls_nobody(self) -> bool:
        """Whether no provider is ever called, so that neither a key nor a budget is needed."""
        return self.miss is ReplayMiss.ERROR


class Replayed(Frozen):
    """How a replay went. Part of the result."""

    trial: int
    """The trial whose record answered."""
    hits: int = 0
    """Calls that the record answered."""
    misses: int = 0
    """Calls that the record does not have."""
    saved_usd: float | None = None
    """What the answered calls would have cost. ``None`` if no price is known."""
    first_miss: str = ""
    """Where the first missed request differs from the nearest one of the record."""
