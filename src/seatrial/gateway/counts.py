"""Sums over the calls of a try, as its result shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from seatrial.domain.model_calls.model_call import CallSums, ModelCall
from seatrial.domain.result import Usage


class CallCounts:
    """Adds up the calls without keeping them."""

    def __init__(self) -> None:
        self.sums = CallSums()
        self._answered = 0
        self._first_token_sec = 0.0

    @classmethod
    def of(cls, calls: Iterable[ModelCall]) -> Self:
        counts = cls()
        for call in calls:
            counts.add(call)
        return counts

    def add(self, call: ModelCall) -> None:
        self.sums = self.sums.and_also(call)
        if call.first_token_sec is not None:
            self._answered += 1
            self._first_token_sec += call.first_token_sec

    @property
    def usage(self) -> Usage:
        """Empty if no call was made."""
        sums = self.sums
        if not sums.calls:
            return Usage()
        more = {
            "reasoning_tokens": sums.usage.reasoning_tokens,
            "first_token_sec": round(self._first_token_sec / self._answered, 4) if self._answered else None,
            "retries": max(0, sums.tries - sums.calls),
            "rate_limited_sec": round(sums.waited_sec, 3),
        }
        return sums.result_usage.model_copy(update=more)
