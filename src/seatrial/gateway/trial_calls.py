"""All model calls of one try: their record, their sums, and how the model's service behaved.

The runner makes one for each try and reads it at the end. It outlives doors: an agent of several steps has one for each
step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.model_call import CallSums, ModelCall
from seatrial.domain.result import Usage
from seatrial.engine.model_patience import ModelHealth
from seatrial.gateway.agent_clock import AgentClock
from seatrial.gateway.counts import CallCounts
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
        self._counts = CallCounts()
        self._stops_clock = stops_clock
        self._journal = Journal(folder)
        self._bodies = Bodies(folder, secrets) if full else None
        self._since: float | None = None

    def effort(self, door: Hashable, *, streams: bool, on_ask: Callable[[], None]) -> Effort:
        effort = Effort(door, streams, self.health, on_ask, since=self._since, stops_clock=self._stops_clock)
        self._since = effort.began if self._since is None else self._since
        return effort

    def next_number(self) -> int:
        return self._journal.next_number()

    def asks(self, number: int, model: str, at: datetime) -> None:
        """A request of this call is about to be sent."""
        self._journal.asks(number, model, at.isoformat())

    def end(self, number: int | None, call: ModelCall) -> None:
        self._counts.add(call)
        self.health.waited_sec += call.seconds
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
    def sums(self) -> CallSums:
        return self._counts.sums

    @property
    def usage(self) -> Usage:
        """What the result of the try says. Empty if no call was made."""
        return self._counts.usage

    def keep(self, number: int | None, kind: str, body: bytes) -> None:
        if self._bodies is not None and number is not None:
            self._bodies.keep(number, kind, body)

    def recording(self, number: int | None, kind: str) -> KeptStream:
        if self._bodies is None or number is None:
            return KeptStream()
        return self._bodies.stream(number, kind)

    def close(self) -> None:
        self._journal.close()
