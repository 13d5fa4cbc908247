"""The store of trials: filters, rows and every change of a trial."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec
from seatrial.domain.result import Attempt, Result
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial, TrialState
from seatrial.ports.store.jobs import Page


class TrialFilter(Frozen):
    job_id: int | None = None
    after: int = 0
    """Only trials with a larger id."""
    states: tuple[TrialState, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    causes: tuple[Cause, ...] = ()
    task: str | None = None
    """A task's name."""
    agent: str | None = None
    model: str | None = None


class TrialRow(Frozen):
    """A trial with the result of its last ended attempt."""

    trial: Trial
    result: Result | None = None


class TrialHistory(Frozen):
    """A trial with every try of it, and the agent that its job gives it to."""

    trial: Trial
    agent: AgentSpec
    attempts: tuple[Attempt, ...] = ()
    """First to last."""

    @property
    def result(self) -> Result | None:
        """Of the last try that has one."""
        return next((attempt.result for attempt in reversed(self.attempts) if attempt.result is not None), None)


class TrialSummary(Frozen):
    """A trial with the numbers of its last result, for listings: cheap to read, whatever the result holds."""

    trial: Trial
    reward: float | None = None
    marks: tuple[Mark, ...] = ()
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class PhaseEntry(Frozen):
    trial_id: int
    job_id: int
    attempt: int
    phase: Phase
    at: datetime
    step: str | None = None


class RenewalReport(Frozen):
    lost: frozenset[int] = frozenset()
    cancel: frozenset[int] = frozenset()


class TrialStore(Protocol):
    async def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None = None,
        seal: str | None = None,
    ) -> list[Trial]:
        """Takes up to ``limit`` queued trials whose time has come, fairly over jobs and within each job's concurrency.

        Each has the state ``running`` and the next attempt number. Appends ``trial.claimed``. With ``job_id`` only
        trials of that job are taken (``seatrial run`` works on its own job alone).

        With ``seal``, the fingerprint of a secret key, jobs whose keys another secret key sealed are left to workers
        that can open them.

        A suspected trial is taken by a worker that holds nothing, alone, and nothing is taken beside it."""
        ...

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        """Extends the leases of ``{trial id: attempt}``; tells which were lost and which should be cancelled.

        A lease that ran out is extended too, as long as nobody took the trial. Unknown ids count as lost."""
        ...

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        """Trials of this worker that somebody cancelled. Cheaper than a renewal: workers ask often."""
        ...

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        """Notes the phases that trials entered, and appends ``trial.phase`` for each; stale entries are dropped.

        Takes many at once, because a worker with hundreds of trials collects them and writes a few times a second."""
        ...

    async def finish(self, trial_id: int, attempt: int, result: Result, now: datetime) -> Trial:
        """Records the result of the current attempt and ends the trial. Exactly once, else ``StaleAttempt``."""
        ...

    async def try_again(self, trial_id: int, attempt: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        """Records the result of the current attempt and queues the trial anew (or ends it, if it was cancelled)."""
        ...

    async def lose_worker(self, trial_id: int, attempt: int, result: Result, last: bool, now: datetime) -> Trial:
        """Records that the worker of the current attempt went silent, and queues the trial anew or ends it.

        An attempt that shared its worker with others does not count, and is never the last; see ``domain/isolation``.
        """
        ...

    async def give_back(self, trial_id: int, attempt: int, now: datetime) -> Trial:
        """Queues a claimed trial anew because its worker is leaving; the attempt does not count."""
        ...

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        """Running trials whose lease ran out."""
        ...

    async def trial(self, trial_id: int) -> TrialRow: ...

    def trials(self, chosen: TrialFilter) -> AsyncGenerator[TrialRow]:
        """In order of id, fetched in chunks so that memory stays flat."""
        ...

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        """One page, newest first."""
        ...

    async def history(self, trial_id: int) -> TrialHistory:
        """Everything about one trial, of one moment."""
        ...

    async def running_by_worker(self) -> dict[str, int]:
        """How many trials each worker has under way; one that has none has no entry."""
        ...

    async def attempts(self, trial_id: int) -> list[Attempt]:
        """Every claim of the trial, first to last."""
        ...
