"""Collects the phases that trials enter and writes them together, a few times a second.

Hundreds of trials may change their phase at the same time. One write for each would overload the store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

from seatrial.domain.result import Usage
from seatrial.domain.trial import Phase, Trial
from seatrial.engine.clock import Clock
from seatrial.engine.duties import Duties
from seatrial.ports.runner import Progress, Window
from seatrial.ports.store import PhaseEntry, TrialStore


class PhaseLog:
    """Use with ``async with`` around a worker. A runner reports to ``of(trial)``."""

    def __init__(self, trials: TrialStore, clock: Clock, every_sec: float = 0.25, duties: Duties | None = None) -> None:
        self._trials = trials
        self._clock = clock
        self._every_sec = every_sec
        self._duties = duties or Duties(clock)
        self._entries: list[PhaseEntry] = []
        self._writing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def of(self, trial: Trial, show: Callable[[Window], None]) -> TrialProgress:
        return TrialProgress(self, trial, show)

    def note(self, trial: Trial, phase: Phase, step: str | None) -> None:
        entry = PhaseEntry(
            trial_id=trial.id,
            job_id=trial.job_id,
            try_number=trial.try_number,
            phase=phase,
            at=self._clock(),
            step=step,
        )
        self._entries.append(entry)

    async def flush(self) -> None:
        """Writes all phases that were noted before this call."""
        async with self._writing:
            entries, self._entries = self._entries, []
            if entries:
                await self._trials.enter_phases(entries)

    async def catch_up(self) -> None:
        """Like ``flush``, but never raises, because no result depends on phases."""
        await self._duties.once("phases", self.flush)

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(
            self._duties.forever("phases", self.flush, self._every_sec, later=True), name="phase-log"
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        await self.catch_up()


class TrialProgress(Progress):
    """Receives the reports of one try."""

    def __init__(self, log: PhaseLog, trial: Trial, show: Callable[[Window], None]) -> None:
        self._log = log
        self._trial = trial
        self._show = show
        self.reached = Phase.PREPARING
        self.usage = Usage()

    async def phase(self, phase: Phase, step: str | None = None) -> None:
        self.reached = phase
        self._log.note(self._trial, phase, step)

    def spent(self, usage: Usage) -> None:
        self.usage = usage

    def shows(self, window: Window) -> None:
        self._show(window)
