"""All model calls of one try: their record, their sums, and how the model's service behaved.

The runner makes one for each try and reads it at the end. It outlives doors: an agent of several steps has one for each
step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.model_call import CallSums, ModelCall
from seatrial.domain.result import Usage
from seatrial.engine.model_patience import ModelHealth
from seatrial.gateway.agent_clock import AgentClock
from seatrial.gateway.effort import Effort
from seatrial.gateway.journal import Bodies, Journal, KeptStream
from seatrial.gateway.routes import Route


class TrialCalls:
    """``folder`` is the try's. With ``full`` the bodies are kept as well, without the secrets."""

    def __init__(
        self, folder: Path, *, full: bool = False, secrets: Iterable[str] = (), stops_clock: bool = True
    ) -> None:
        self.health = ModelHealth()
        self.clock = AgentClock()
        self.sums = CallSums()
        self._stops_clock = stops_clock
        self._journal = Journal(folder)
        self._bodies = Bodies(folder, secrets) if full else None
        self._since: float | None = None
        self._first_token_sec = 0.0
        self._answered = 0

    def effort(self, door: Hashable, *, streams: bool) -> Effort:
        effort = Effort(door, streams, self.health, since=self._since, stops_clock=self._stops_clock)
        self._since = effort.began if self._since is None else self._since
        return effort

    def begin(self, model: str, at: datetime) -> int:
        return self._journal.begin(model, at.isoformat())

    def end(self, number: int | None, call: ModelCall) -> None:
        self.sums = self.sums.and_also(call)
        self.health.waited_sec += call.seconds
        if call.first_token_sec is not None:
            self._answered += 1
            self._first_token_sec += call.first_token_sec
        self._journal.end(number, call)

    def refuse(self, route: Route, format_name: str, status: int, why: str) -> None:
        """Notes a call that the budget did not allow."""
        call = ModelCall(
            at=datetime.now(UTC),
            model=route.litellm_name,
            provider=route.provider,
            format=format_name,
            status=status,
            tries=0,
            over_budget=True,
            error=why,
        )
        self.end(None, call)

    @property
    def usage(self) -> Usage:
        """What the result of the try says. Empty if no call was made."""
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

    def keep(self, number: int | None, kind: str, body: bytes) -> None:
        if self._bodies is not None and number is not None:
            self._bodies.keep(number, kind, body)

    def recording(self, number: int | None, kind: str) -> KeptStream:
        if self._bodies is None or number is None:
            return KeptStream()
        return self._bodies.stream(number, kind)

    def close(self) -> None:
        self._journal.close()
