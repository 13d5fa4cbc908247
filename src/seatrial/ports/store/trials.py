"""The store of trials: filters, rows and every change of a trial."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from seatrial.domain.fleet.isolation import Suspects
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import EVERYTHING, Offer
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec
from seatrial.domain.reports.failures import FailedTrial
from seatrial.domain.result import Result, Spent, Try
from seatrial.domain.suffered import Suffered
from seatrial.domain.task import TaskRef
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
    tag: str | None = None
    label: str | None = None
    """A label's name, or ``name=value``."""
    reviewed: bool | None = None
    noted: bool | None = None
    """Whether somebody wrote a note."""


class TrialRow(Frozen):
    """A trial with the result of its last ended try."""

    trial: Trial
    result: Result | None = None


class TrialHistory(Frozen):
    """A trial with all of its tries and its agent."""

    trial: Trial
    agent: AgentSpec
    tries: tuple[Try, ...] = ()
    """First to last."""

    @property
    def spent(self) -> Spent:
        """What all tries used together."""
        spent = Spent()
        for a_try in self.tries:
            spent = spent.and_also(a_try.result) if a_try.result is not None else spent
        return spent

    @property
    def result(self) -> Result | None:
        """The result of the last try that has one."""
        return next((a_try.result for a_try in reversed(self.tries) if a_try.result is not None), None)


class TrialSummary(Frozen):
    """A trial with the numbers of its last result. Listings use it, because a whole result may be large."""

    trial: Trial
    reward: float | None = None
    marks: tuple[Mark, ...] = ()
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    spent: Spent = Spent()
    """Over all tries, also while the trial waits for another one."""
    suffered: Suffered = Suffered()
    """In the last try with a result."""


class TrialNumbers(NamedTuple):
    """What reports need of a trial. A plain tuple, because a report reads a hundred thousand of them."""

    trial_id: int
    task: TaskRef
    agent_index: int
    attempt: int
    added: bool
    tries: int
    outcome: Outcome | None
    """``None`` until the trial has ended. The next fields are then those of an earlier try."""
    cause: Cause | None
    reward: float | None
    marks: tuple[Mark, ...]
    seconds: float | None
    spent: Spent
    suffered: Suffered = Suffered()


class FailedRow(NamedTuple):
    """A failed trial as the store knows it; labels are added by the caller."""

    trial: FailedTrial
    digest: str
    agent_index: int


class PhaseEntry(Frozen):
    trial_id: int
    job_id: int
    try_number: int
    phase: Phase
    at: datetime
    step: str | None = None


class RenewalReport(Frozen):
    lost: frozenset[int] = frozenset()
    cancel: frozenset[int] = frozenset()


class Loss(Frozen):
    """A try whose worker is gone."""

    trial_id: int
    try_number: int
    result: Result
    last: bool
    """Whether the job allows no further try, should this one count."""


class TrialStore(Protocol):
    async def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None = None,
        seal: str | None = None,
        group: str | None = None,
        offer: Offer = EVERYTHING,
    ) -> list[Trial]:
        """Claims up to ``limit`` queued trials that are due. Jobs take turns, within the concurrency of each job.

        Each gets the state ``running`` and the next try number. Appends ``trial.claimed``. With ``job_id`` only
        trials of that job are claimed, as ``seatrial run`` does.

        With ``seal``, the fingerprint of a secret key, jobs whose keys were sealed with another secret key are left to
        other workers.

        ``offer`` says what the worker can run and how much room it has. Other trials are passed over. Jobs take turns
        with room, too. A trial that waited for room longer than ``PATIENCE`` is taken first, and if it still does
        not fit, one worker that could hold it claims nothing else.

        Suspected trials are claimed by their ``group`` only, and never by two workers at once. A worker that asks for a
        group holds nothing else; see ``domain/fleet/isolation``."""

    async def suspects(self, now: datetime, job_id: int | None = None, seal: str | None = None) -> list[Suspects]:
        """The groups of suspected trials that wait for a process, as ``claim`` would give them."""

    async def any_due(self, now: datetime) -> bool:
        """Whether a queued trial may be claimed now by some worker. Cheaper than a claim, and changes nothing."""
        ...

    async def queued_needs(self, job_id: int) -> list[Needs]:
        """What the queued trials of a job need: every different one."""

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        """Extends the leases of ``{trial id: try}``. Reports which were lost and which should be cancelled.

        Also extends an expired lease if no other worker claimed the trial. Unknown ids count as lost."""

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        """Cancelled trials of this worker. Cheaper than a renewal, because workers ask often."""

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        """Saves the phases of trials and appends ``trial.phase`` for each. Drops entries of earlier tries.

        Takes many entries, because a worker collects them and writes a few times a second."""

    async def finish(self, trial_id: int, try_number: int, result: Result, now: datetime) -> Trial:
        """Records the result of the current try and ends the trial. A second call raises ``StaleTry``."""

    async def try_again(self, trial_id: int, try_number: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        """Records the result of the current try and queues the trial again, or ends it if it was cancelled."""

    async def lose_worker(self, worker: str, losses: Sequence[Loss], death: Death, now: datetime) -> list[Trial]:
        """Records that the worker of these tries is gone, and queues each trial again or ends it.

        All at once, because the trials that a worker held are searched together for the one that killed it; see
        ``domain/fleet/isolation``. Tries that are not current any more are left out."""

    async def give_back(self, trial_id: int, try_number: int, now: datetime) -> Trial:
        """Queues a claimed trial again because its worker is leaving. The try does not count."""

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        """Running trials with an expired lease."""

    async def is_due_since(self, moment: datetime) -> bool:
        """Whether a trial of an open job is queued and could have been claimed since then. Cheap, however many are
        queued."""
        ...

    async def get(self, trial_id: int) -> TrialRow: ...

    def each(self, chosen: TrialFilter) -> AsyncGenerator[TrialRow]:
        """In order of id, read in chunks to save memory."""

    async def numbers(self, job_id: int) -> list[TrialNumbers]:
        """Of every trial of a job, in order of id."""
        ...

    async def failed(self, job_id: int) -> list[FailedRow]:
        """What decided the planned trials of a job that failed or ended in an error, in order of id."""
        ...

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        """One page, newest first."""

    async def history(self, trial_id: int) -> TrialHistory:
        """Everything about one trial, read in one transaction."""

    async def running_by_worker(self) -> dict[str, int]:
        """The number of running trials of each worker that has some."""

    async def tries(self, trial_id: int) -> list[Try]:
        """Every claim of the trial, first to last."""
