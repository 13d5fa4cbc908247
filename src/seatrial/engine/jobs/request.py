"""The request for a job, before its tasks are looked up. Shared by ``seatrial run`` and ``POST /api/v1/jobs``, so that
the same request gives the same job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import ConfigDict, Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec, JobSpec, RetryPolicy
from seatrial.domain.model_calls.budget import Budget
from seatrial.domain.model_calls.record import Record
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.numbers import LARGEST_COUNT
from seatrial.domain.reports.settling import UntilSettled
from seatrial.domain.task import Task, TaskRef, TaskSelection
from seatrial.errors import InvalidInput

MOST_TRIALS = 100_000
"""Maximum trials of a job. All of them are written in one transaction."""
LONGEST_TRIAL_SEC = 10 * 365 * 86400.0
_SECRET_NAMES = ("API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD")


class AgentParameters(Frozen):
    """One agent: its name or import path and, optionally, its own model, options and environment."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str
    model: str | None = None
    options: dict[str, Any] = {}
    """Keyword arguments of the agent: temperature, max_turns, api_base, …"""
    env: dict[str, str] = {}
    """Environment of the agent's commands in the sandbox. Keys do not belong here."""


class JobParameters(Frozen):
    """Everything about a job except its tasks."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str = ""
    dataset: str | None = None
    """``NAME`` or ``NAME@VERSION``."""
    selection: TaskSelection = TaskSelection()
    agents: tuple[AgentParameters, ...] = ()
    """Default: the oracle, which runs the solution of each task."""
    models: tuple[str, ...] = ()
    """For every agent that takes a model and has none of its own."""
    options: dict[str, Any] = {}
    """For every agent that takes a model."""
    env: dict[str, str] = {}
    """For every agent."""
    attempts: int = Field(default=1, ge=1, le=1000)
    concurrency: int | None = Field(default=None, ge=1, le=LARGEST_COUNT)
    """Trials of this job at the same time, over all workers."""
    sandbox: str = "auto"
    timeout_multiplier: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    trial_limit_sec: float | None = Field(default=None, gt=0, le=LONGEST_TRIAL_SEC, allow_inf_nan=False)
    force_build: bool = False
    retry: RetryPolicy = RetryPolicy()
    until_settled: UntilSettled | None = None
    """Stop early, once it is known which of two configurations is better; ``attempts`` is then the maximum."""
    budget: Budget = Budget()
    """The most that the job, and each of its trials, may spend on models: dollars, tokens, calls."""
    record: Record = Record.CALLS
    """What is kept of model calls: a line for each, or with ``full`` also the bodies of requests and answers."""
    replay: Replay | None = None
    """Answers the model calls from the record of an earlier trial, which was run with the record ``full``."""
    tell_limits: bool = False
    """Say in the instruction how much time and budget the agent has."""
    labels: dict[str, str] = {}

    def matrix(self, takes_model: Callable[[str], bool]) -> tuple[AgentSpec, ...]:
        """Agents × models. An agent with its own model keeps it. An agent that takes no model appears once, without the
        shared options."""
        specs: list[AgentSpec] = []
        for entry in self.agents or (AgentParameters(name="oracle"),):
            own = [entry.model] if entry.model else []
            takes = takes_model(entry.name)
            models: Sequence[str | None] = own or (list(self.models) if takes else []) or [None]
            options = {**self.options, **entry.options} if takes else entry.options
            env = {**self.env, **entry.env}
            specs += [AgentSpec(name=entry.name, model=model, options=options, env=env) for model in models]
        return _distinct(specs)

    def spec(self, tasks: Iterable[Task], takes_model: Callable[[str], bool], default_sandbox: str) -> JobSpec:
        """The job for these tasks. ``default_sandbox`` replaces ``auto``."""
        spec = JobSpec(
            name=self.name,
            tasks=tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks),
            agents=self.matrix(takes_model),
            attempts=self.attempts,
            dataset=self.dataset,
            sandbox=default_sandbox if self.sandbox == "auto" else self.sandbox,
            concurrency=self.concurrency,
            timeout_multiplier=self.timeout_multiplier,
            trial_limit_sec=self.trial_limit_sec,
            force_build=self.force_build,
            retry=self.retry,
            until_settled=self.until_settled,
            budget=self.budget,
            record=self.record,
            replay=self.replay,
            tell_limits=self.tell_limits,
            labels=self.labels,
        )
        if (trials := planned_trials(spec)) > MOST_TRIALS:
            raise InvalidInput(
                f"The job would have {trials:,} trials; at most {MOST_TRIALS:,} are allowed.",
                field="attempts",
                fix="Split it into several jobs.",
            )
        return spec


def planned_trials(spec: JobSpec) -> int:
    return len(spec.tasks) * len(spec.agents) * spec.attempts


def refuse_keys(parameters: JobParameters) -> None:
    """Refuses keys in the request, because every viewer can read it. Keys are sent separately and encrypted."""
    places = [("env", parameters.env), ("options", parameters.options)]
    for index, agent in enumerate(parameters.agents):
        places += [(f"agents.{index}.env", agent.env), (f"agents.{index}.options", agent.options)]
    for field, content in places:
        if name := next(filter(looks_secret, content), None):
            raise InvalidInput(
                f"{name} looks like a key. A job must not contain keys, because every viewer can read it.",
                field=field,
                fix="Send it in a header, X-Provider-Key: NAME=value. It is encrypted, and deleted when the job ends.",
            )


def looks_secret(name: str) -> bool:
    """Whether a variable or an option with this name holds a secret."""
    return name.upper().endswith(_SECRET_NAMES)


def _distinct(specs: Sequence[AgentSpec]) -> tuple[AgentSpec, ...]:
    seen: dict[str, AgentSpec] = {}
    for spec in specs:
        seen.setdefault(spec.model_dump_json(), spec)
    return tuple(seen.values())
