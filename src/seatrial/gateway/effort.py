"""What one call took: its requests, waits and times. The forwarder fills it in, and the trial's record shows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from seatrial.engine.model_patience import ModelHealth
from seatrial.engine.provider_pace import Turn
from seatrial.errors import ModelFault
from seatrial.gateway.call_budget import Grant

Clock = Callable[[], float]


@dataclass(eq=False)
class Effort:
    """The effort of one call. Also updates ``health``, which is the trial's."""

    door: Hashable
    """Which door it came through."""
    streams: bool
    health: ModelHealth
    on_ask: Callable[[], None] = lambda: None
    """Called before each request to the provider."""
    grant: Grant | None = None
    """What the call may spend; answers that are lost count too."""
    since: float | None = None
    """When the trial's first call began; this one, if it is left out."""
    stops_clock: bool = False
    """Whether the agent's time limit does not run while the call waits for its turn."""
    clock: Clock = time.monotonic
    began: float = field(init=False)
    tries: int = 0
    is_open: bool = False
    """The last request was sent, and has not failed."""
    failures: int = 0
    lost: int = 0
    """Failures for which the provider may still count an answer."""
    waited_sec: float = 0.0
    """Seconds in which it waited because the provider limits the pace."""
    first_sec: float | None = None
    """From the last request to the first byte of its answer."""
    _asked: float | None = None
    _failing_since: float | None = None

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.health.calls += 1

    @property
    def seconds(self) -> float:
        return self.clock() - self.began

    def asks(self) -> None:
        self.on_ask()
        self.tries += 1
        self.is_open = True
        self.health.requests += 1
        self._asked = self.clock()
        self.first_sec = None

    def hears(self) -> None:
        if self.first_sec is None and self._asked is not None:
            self.first_sec = round(self.clock() - self._asked, 4)

    def fails(self, kind: str, *, lost: bool = False) -> None:
        """``lost``: the provider may still count an answer for it."""
        self.failures += 1
        self.is_open = False
        self.lost += lost
        if lost and self.grant is not None:
            self.grant.lose()
        self.health.faults[kind] += 1
        asked = self.clock() if self._asked is None else self._asked
        self._failing_since = asked if self._failing_since is None else self._failing_since
        self.health.lost_sec += self.clock() - asked

    def may_ask_again(self) -> bool:
        """Whether the budget has room for another request after one that was lost."""
        return self.grant is None or self.grant.allows_another()

    def succeeds(self) -> None:
        self.health.interrupted = self.health.given_up = None
        self._failing_since = None

    def gives_up(self, kind: str) -> None:
        """The agent gets no answer, and may end because of that."""
        words = f"failed {self.failures} times within {self.failing_for():.0f} s"
        self.health.given_up = ModelFault(f"The model's service {words}: {kind}")

    def failing_for(self) -> float:
        return 0.0 if self._failing_since is None else self.clock() - self._failing_since

    def forgive(self, seconds: float) -> None:
        """This much of the time since the first failure does not count as patience."""
        if self._failing_since is not None:
            self._failing_since += seconds

    async def queue(self, taking: Awaitable[Turn]) -> Turn:
        began = self.clock()
        try:
            return await taking
        except asyncio.CancelledError:
            if not self.stops_clock:
                self.health.interrupted = (
                    "its calls waited for their turn at the provider when the agent's time ran out"
                )
            raise
        finally:
            self._waited(self.clock() - began, limited=True)

    async def wait(self, seconds: float, *, limited: bool) -> None:
        began = self.clock()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.health.interrupted = "the model's service was failing when the agent's time ran out"
            raise
        finally:
            self._waited(self.clock() - began, limited=limited)

    def interrupted(self) -> None:
        """The agent closed its connection, or its time ran out, before there was an answer."""
        asked = self._asked
        if asked is None or self.first_sec is not None:
            return
        silent, whole = self.clock() - asked, self.clock() - (self.began if self.since is None else self.since)
        if self.failures:
            self.health.interrupted = "the model's service was failing when the agent's time ran out"
        elif silent > whole / 2:
            self.health.interrupted = (
                f"the model's service had not answered for {silent:.0f} s when the agent's time ran out"
            )

    def _waited(self, seconds: float, *, limited: bool) -> None:
        if limited:
            self.waited_sec += seconds
            self.health.pace_wait_sec += seconds
        if not limited or not self.stops_clock:
            self.health.lost_sec += seconds
