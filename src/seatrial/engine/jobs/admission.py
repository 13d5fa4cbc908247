"""Decides what a job may ask for, at the command line or through the service.

A user of `seatrial` on the machine is its admin and may name paths, classes and environments of Harbor. A caller of the
service may not, whatever the role of its token. The operator's ceilings hold for both. They are checked when a job is
submitted and again before each try, because the operator may lower them in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seatrial.domain.agents.catalogue import calls_any_address, provider_of, runs_on_host
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.provider_addresses import has_route, speaks_a_format
from seatrial.domain.sandbox_choice import SEVERAL_CONTAINERS, needs_several_containers
from seatrial.domain.task import Task
from seatrial.engine.jobs.option_rules import check_agent
from seatrial.errors import InvalidInput, Unsupported

OUR_SANDBOXES = frozenset({"auto", "oci", "docker"})


@dataclass(frozen=True, slots=True)
class Ceilings:
    memory_mb: int = 0
    cpus: float = 0
    storage_mb: int = 0
    trial_sec: float = 0
    """For the sum of a task's own limits, and for the limit that a job asks for a whole trial."""
    trials: int = 0
    attempts: int = 0

    def check_job(self, spec: JobSpec) -> None:
        """Raises ``Unsupported`` with both numbers if a job asks for too much."""
        trials = len(spec.tasks) * len(spec.agents) * spec.attempts
        _refuse_more("The job would have", trials, self.trials, "trials", "attempts", "SEATRIAL_MAX_TRIALS_PER_JOB")
        _refuse_more("The job asks for", spec.attempts, self.attempts, "attempts", "attempts", "SEATRIAL_MAX_ATTEMPTS")
        self.check_limit(spec.trial_limit_sec)

    def check_limit(self, asked_sec: float | None) -> None:
        """Checks the limit that a job or a request asks for a whole trial."""
        field = "trial_limit_sec"
        _refuse_more("The job gives a trial", asked_sec, self.trial_sec, "seconds", field, "SEATRIAL_MAX_TRIAL_SEC")

    def check_task(self, task: Task, stretch: float) -> None:
        """``stretch`` is the job's timeout multiplier."""
        asks, wants = f"Task {task.name} asks for", task.resources
        _refuse_more(asks, wants.memory_mb, self.memory_mb, "MB of memory", "tasks", "SEATRIAL_MAX_MEMORY_MB")
        _refuse_more(asks, wants.cpus, self.cpus, "processors", "tasks", "SEATRIAL_MAX_CPUS")
        _refuse_more(asks, wants.storage_mb, self.storage_mb, "MB of storage", "tasks", "SEATRIAL_MAX_STORAGE_MB")
        limits = (task.agent_timeout_sec, task.verifier_timeout_sec)
        seconds = stretch * sum(max(limit or 0.0, 0.0) for limit in limits) + max(task.build_timeout_sec or 0.0, 0.0)
        _refuse_more(asks, seconds, self.trial_sec, "seconds altogether", "tasks", "SEATRIAL_MAX_TRIAL_SEC")


def _refuse_more(asks: str, wanted: float | None, most: float, unit: str, field: str, setting: str) -> None:
    if not most or wanted is None or wanted <= most:
        return
    raise Unsupported(
        f"{asks} {wanted:,.10g} {unit}; this installation allows {most:,.10g} ({setting}).",
        field=field,
        fix="Ask for less, or have its operator raise the ceiling.",
    )


@dataclass(frozen=True, slots=True)
class Admission:
    at_the_machine: bool = False
    agents: frozenset[str] = frozenset()
    """Import paths of agents that the operator allows callers to name."""
    sandboxes: frozenset[str] = OUR_SANDBOXES
    ceilings: Ceilings = field(default_factory=Ceilings)
    keys_inside: bool = False
    """Whether agents inside sandboxes may get the keys of the installation."""

    def check(self, spec: JobSpec) -> None:
        """Raises the error that says what to change about the job."""
        self.ceilings.check_job(spec)
        if not self.at_the_machine:
            self._check_sandbox(spec.sandbox)
            for agent in spec.agents:
                check_agent(agent, self.agents)

    def check_task(self, spec: JobSpec, task: Task) -> None:
        """The same about one of its tasks."""
        self.ceilings.check_task(task, spec.timeout_multiplier)
        if not self.at_the_machine and needs_several_containers(spec.sandbox, task):
            self._check_sandbox(SEVERAL_CONTAINERS, f"Task {task.name} has several services and needs")

    def signed(self, spec: JobSpec) -> JobSpec:
        """Adds what depends on the entry point: a user who submits at the machine is its operator, whose settings hold
        for the job wherever it runs."""
        inside = self.at_the_machine and self.keys_inside and spec.own_keys
        return spec if spec.own_keys_inside or not inside else spec.model_copy(update={"own_keys_inside": True})

    def may_use_own_keys(self, spec: JobSpec, agent: AgentSpec) -> bool:
        """Whether this agent may use the installation's keys. Inside a sandbox it needs the operator's permission."""
        return spec.own_keys and (not needs_key_inside(spec, agent) or self.own_keys_may_enter(spec))

    def own_keys_may_enter(self, spec: JobSpec) -> bool:
        """Whether the installation's keys may go into a sandbox that cannot reach the gate."""
        return spec.own_keys and (self.keys_inside or spec.own_keys_inside)

    def _check_sandbox(self, name: str, needs: str = "The job asks for") -> None:
        if name in self.sandboxes:
            return
        raise InvalidInput(
            f"{needs} the sandbox {name}, which this service does not offer: it is outside of its own isolation.",
            field="sandbox",
            fix=f"Use {', '.join(sorted(self.sandboxes))}; its operator can add others to SEATRIAL_ALLOWED_SANDBOXES.",
        )


def needs_key_inside(spec: JobSpec, agent: AgentSpec) -> bool:
    """Whether the agent needs its key inside the sandbox. Calls that pass the gate get it outside.

    The gate has a door in each of our own sandboxes, for models whose providers speak one of its formats."""
    if agent.model is None or runs_on_host(agent.name):
        return False
    return not _addressed(agent) and (spec.sandbox not in OUR_SANDBOXES or not has_route(agent.model))


def passes_gate(spec: JobSpec, agent: AgentSpec) -> bool:
    """Whether the calls of this agent go through the gate, as far as the job tells. The worker decides: a task may need
    another sandbox, and the operator's addresses of providers are known there."""
    if agent.model is None or not speaks_a_format(provider_of(agent.model)):
        return False
    if runs_on_host(agent.name):
        return calls_any_address(agent.name) or _addressed(agent)
    return spec.sandbox in OUR_SANDBOXES


def _addressed(agent: AgentSpec) -> bool:
    return not {"api_base", "base_url"}.isdisjoint(agent.options)
