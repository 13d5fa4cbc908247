"""All model calls of one try: their record, their sums, and how the model's service behaved.

The runner makes one for each try and reads it at the end. It outlives doors: a trial of several steps has one door for
each step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.model_calls.model_call import CallSums, CallUsage, ModelCall
from seatrial.domain.model_calls.prices import CallCost
from seatrial.domain.model_calls.replay import TOKENS_FILE, Replayed
from seatrial.domain.result import Usage
from seatrial.engine.model_patience import ModelHealth
from seatrial.errors import ModelFault
from seatrial.gateway.agent_clock import AgentClock, ClockStop
from seatrial.gateway.bounded_lines import BoundedLines
from seatrial.gateway.call_budget import Grant, NotGranted
from seatrial.gateway.counts import CallCounts
from seatrial.gateway.effort import Effort
from seatrial.gateway.journal import Journal
from seatrial.gateway.recording import RecordedCall, Recording
from seatrial.gateway.replay import CallReplay
from seatrial.gateway.routes import Route
from seatrial.gateway.wire import AnswerTokens

MOST_TOKEN_BYTES = 256 * 1024 * 1024
"""Token ids and logprobs of one try. Each call may tell the ids of its whole prompt."""


class TrialCalls:
    """``folder`` is the try's. With ``full`` the bodies are kept as well, without the secrets. With ``replay`` a record
    answers, not a provider."""

    def __init__(
        self,
        folder: Path,
        *,
        full: bool = False,
        secrets: Iterable[str] = (),
        stops_clock: bool = True,
        replay: CallReplay | None = None,
    ) -> None:
        self.replay = replay
        self.health = ModelHealth()
        self.clock = AgentClock()
        self._counts = CallCounts()
        self._stops_clock = stops_clock
        self._journal = Journal(folder)
        self._recording = Recording(folder, secrets) if full else None
        self._tokens = BoundedLines(folder / TOKENS_FILE, MOST_TOKEN_BYTES)
        self._since: float | None = None

    def effort(
        self, door: Hashable, *, streams: bool, on_ask: Callable[[], None], grant: Grant | None = None
    ) -> Effort:
        effort = Effort(
            door, streams, self.health, on_ask, grant=grant, since=self._since, stops_clock=self._stops_clock
        )
        self._since = effort.began if self._since is None else self._since
        return effort

    def next_number(self) -> int:
        return self._journal.next_number()

    def asks(self, number: int, model: str, at: datetime) -> None:
        """A request of this call is about to be sent."""
        self._journal.asks(number, model, at.isoformat())

    def hears(self, number: int, usage: CallUsage, cost: CallCost) -> None:
        """The provider has told what this call used, and the agent has not seen the end of the answer yet."""
        self._journal.hears(number, usage, cost)

    def end(self, number: int | None, call: ModelCall) -> None:
        self._counts.add(call)
        self.health.waited_sec += call.seconds
        self._journal.end(number, call)

    def begins(self, stop: ClockStop) -> None:
        """The agent begins; ``stop`` stops the clock of its time limit, unless the operator's setting forbids it."""
        if self._stops_clock:
            self.clock.stop = stop

    def refuse(self, route: Route, format_name: str, status: int, why: NotGranted) -> None:
        """Notes a call that the budget did not allow, or that a replay does not know."""
        if why.kind == "upstream_away":
            self.health.given_up = ModelFault(why.message)
        call = ModelCall(
            at=datetime.now(UTC),
            model=route.litellm_name,
            provider=route.provider,
            format=format_name,
            status=status,
            tries=0,
            over_budget=why.kind == "over_budget",
            error=why.message,
        )
        self.end(None, call)

    @property
    def sums(self) -> CallSums:
        return self._counts.sums

    @property
    def usage(self) -> Usage:
        """What the result of the try says. Empty if no call was made."""
        return self._counts.usage

    @property
    def replayed(self) -> Replayed | None:
        """How the replay went, if it is one."""
        return None if self.replay is None else self.replay.told.model_copy(update={"saved_usd": self.sums.saved_usd})

    @property
    def needs_digests(self) -> bool:
        """Whether calls are recorded or replayed. A digest takes longer than everything else that the gate does."""
        return self._recording is not None or self.replay is not None

    def recording(self, path: str, digest: str, request: str) -> RecordedCall | None:
        """Where the bodies of a call are kept; ``None`` if they are not."""
        return None if self._recording is None else self._recording.call(path, digest, request)

    def save_tokens(self, number: int, tokens: AnswerTokens) -> bool:
        """Writes a line for the call; ``False`` if not all of its tokens are in it. Only the first calls fit into the
        file."""
        line = json.dumps({"call": number, **tokens.told()}, separators=(",", ":")).encode() + b"\n"
        return tokens.is_whole and self._tokens.write(line)

    def close(self) -> None:
        self._journal.close()
        self._tokens.close()
        if self._recording is not None:
            self._recording.close()
        if self.replay is not None:
            self.replay.close()
