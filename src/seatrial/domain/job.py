"""Jobs: tasks × agents × models × attempts. Counts of a job are derived, never stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pydantic import Field

from seatrial.domain.fleet.needs import Needs
from seatrial.domain.frozen import Frozen
from seatrial.domain.model_calls.budget import Budget
from seatrial.domain.model_calls.record import Record
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.reports.settling import UntilSettled, drawn_order
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, NewTrial

_LONGEST_WAIT_SEC = 86400.0


class AgentSpec(Frozen):
    """One agent with one model: a column of the job's matrix. Contains no secret."""

    name: str
    """A registered name (``oracle``, ``terminus-2``, …) or an import path ``pkg.mod:Class``."""
    model: str | None = None
    options: dict[str, Any] = {}
    """Keyword arguments of the agent: temperature, max_turns, api_base, …"""
    env: dict[str, str] = {}
    """Environment of the agent's commands in the sandbox. Must not contain secrets."""

    @property
    def label(self) -> str:
        return f"{self.name} / {self.model}" if self.model else self.name


class RetryPolicy(Frozen):
    """Which errors cause another try. A failure of the agent is a result and is never repeated."""

    max_attempts: int = Field(default=2, ge=1, le=100)
    """Maximum tries of one trial, including lost workers, excluding shared losses (see ``isolation``)."""
    causes: tuple[Cause, ...] = (Cause.LLM, Cause.SANDBOX, Cause.IMAGE, Cause.WORKER_LOST)
    backoff_sec: float = Field(default=5.0, ge=0, le=86400, allow_inf_nan=False)

    def allows(self, cause: Cause | None, tries_made: int) -> bool:
        return cause in self.causes and tries_made < self.max_attempts

    def delay(self, tries_made: int) -> float:
        return float(min(self.backoff_sec * 2 ** min(max(tries_made - 1, 0), 32), _LONGEST_WAIT_SEC))


class JobSpec(Frozen):
    """Everything that determines what a job runs. The same spec can be submitted again."""

    name: str = ""
    tasks: tuple[TaskRef, ...]
    agents: tuple[AgentSpec, ...]
    attempts: int = Field(default=1, ge=1, le=1000)
    dataset: str | None = None
    sandbox: str = "auto"
    concurrency: int | None = Field(default=None, ge=1)
    """Maximum running trials of this job over all workers; ``None``: no limit."""
    timeout_multiplier: float = Field(default=1.0, gt=0)
    trial_limit_sec: float | None = Field(default=None, gt=0)
    """Time limit of a whole trial, in addition to the task's own limits."""
    force_build: bool = False
    retry: RetryPolicy = RetryPolicy()
    until_settled: UntilSettled | None = None
    """Stop early, once it is known which of the two configurations is better; ``attempts`` is then the maximum."""
    budget: Budget = Budget()
    """The most that its trials may spend on models."""
    record: Record = Record.CALLS
    """What is kept of model calls."""
    replay: Replay | None = None
    """The trial whose record answers the model calls, instead of a provider."""
    tell_limits: bool = False
    """Whether the instruction says how much time and budget the agent has."""
    instruction: str | None = None
    """Replaces the instruction of the task."""
    own_keys: bool = True
    """Whether the installation's own provider keys may be used. False if a caller of the service chose the address
    that they would be sent to."""
    own_keys_inside: bool = False
    """Whether an agent in a sandbox without a door of the gate may get the installation's own provider keys. True for
    jobs submitted on the machine itself, where the operator allows it."""
    origin: str = "seatrial"
    """The API it was created through: ``seatrial``, ``tbench-runner`` or ``agentcompass``."""
    labels: dict[str, str] = {}
    """Free labels of the caller."""

    @property
    def calls_providers(self) -> bool:
        """Whether its agents may call a provider. A strict replay calls none."""
        return self.replay is None or not self.replay.calls_nobody


class Job(Frozen):
    id: int
    spec: JobSpec
    created_at: datetime
    cancelled_at: datetime | None = None
    ended_at: datetime | None = None
    """When its last trial ended; ``None`` again after a retry."""
    renamed: str | None = None
    """The name that somebody gave it later."""
    pinned_at: datetime | None = None

    @property
    def title(self) -> str:
        return self.renamed or self.spec.name or f"job-{self.id}"


class JobStatus(StrEnum):
    """Derived from the trials of a job."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class StateCounts(Frozen):
    """Counts of trials by state and outcome."""

    held: int = 0
    queued: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    error: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.held + self.queued + self.running + self.ended

    @property
    def ended(self) -> int:
        return self.passed + self.failed + self.error + self.cancelled

    @property
    def active(self) -> int:
        return self.queued + self.running


class JobCounts(StateCounts):
    """Counts of a job's planned trials. Attempts that were added later are counted apart."""

    added: StateCounts = StateCounts()

    @property
    def moving(self) -> int:
        """Trials that wait or run, added ones included."""
        return self.active + self.added.active

    @property
    def done(self) -> bool:
        """Whether every trial ended, added ones included."""
        return self.ended == self.total and self.added.ended == self.added.total

    @property
    def status(self) -> JobStatus:
        if self.moving:
            return JobStatus.PENDING if self.running + self.ended + self.added.running == 0 else JobStatus.RUNNING
        if self.held + self.added.held:
            return JobStatus.PENDING
        return JobStatus.CANCELLED if self.cancelled and self.cancelled == self.total else JobStatus.COMPLETED


def plan(spec: JobSpec, needs: Mapping[tuple[str, int], Needs] = MappingProxyType({})) -> Iterator[NewTrial]:
    """Every trial of a job, attempt by attempt, so that every task gets a first result before any gets a second.

    ``needs``: by the task's digest and the index of the agent."""
    nothing = Needs()
    tasks = spec.tasks
    if spec.until_settled is not None:
        by_digest = {task.digest: task for task in spec.tasks}
        tasks = tuple(by_digest[digest] for digest in drawn_order(spec.until_settled, tuple(by_digest)))
    for attempt in range(1, spec.attempts + 1):
        for task in tasks:
            for index, agent in enumerate(spec.agents):
                yield NewTrial(
                    task=task,
                    agent_index=index,
                    agent=agent.name,
                    model=agent.model,
                    attempt=attempt,
                    needs=needs.get((task.digest, index), nothing),
                )
