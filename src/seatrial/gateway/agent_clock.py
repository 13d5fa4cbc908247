"""Stops the clock of an agent's time limit while the agent can do nothing but wait for a provider's limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

ClockStop = Callable[[], AbstractContextManager[None]]
"""Stops the clock of the agent's time limit while its block runs."""


class AgentClock:
    """The clock of one trial's agent. It stands still while calls are open and *all* of them wait.

    An agent with another call under way uses its time."""

    def __init__(self, stop: ClockStop | None = None) -> None:
        self.stop: ClockStop = stop or nullcontext
        """Set when the agent begins, because its clock is not known before."""
        self._open = 0
        self._waiting = 0
        self._stopped: ExitStack | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around each call."""
        self._open += 1
        self._look()
        try:
            yield
        finally:
            self._open -= 1
            self._look()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around each wait of a call."""
        self._waiting += 1
        self._look()
        try:
            yield
        finally:
            self._waiting -= 1
            self._look()

    def _look(self) -> None:
        stands = 0 < self._waiting == self._open
        if stands and self._stopped is None:
            self._stopped = ExitStack()
            self._stopped.enter_context(self.stop())
        elif not stands and self._stopped is not None:
            stopped, self._stopped = self._stopped, None
            stopped.close()
