"""Submits a job: plan it, check it, store it.

The CLI and all APIs use this, so that the same request gives the same job. A request that cannot work is refused here,
before anything runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.likeness import did_you_mean
from seatrial.domain.task import Task
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.admission import Admission
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.engine.jobs.keys import KeyRing
from seatrial.engine.jobs.model_urls import ModelUrls
from seatrial.engine.jobs.places import Places, demands_of
from seatrial.engine.jobs.request import JobParameters, refuse_keys
from seatrial.engine.jobs.settle import Settler
from seatrial.engine.trials.call_record import check_replay
from seatrial.errors import InvalidInput, Unsupported
from seatrial.ports.store import Once, Store
from seatrial.ports.wake_up import WakeUp

_OURS = ("auto", "oci", "docker")


@dataclass(frozen=True)
class Capabilities:
    """What this installation can run. Functions, so that use cases need not know Harbor or any sandbox."""

    agent_names: Callable[[], Sequence[str]]
    needs_model: Callable[[str], bool]
    takes_model: Callable[[str], bool]
    has_sandbox: Callable[[str], bool]
    runs_services: Callable[[], Awaitable[bool]]
    """Whether a container engine answers. Tasks with several services need one."""
    default_sandbox: str
    """The sandbox for ``auto``."""


@dataclass(frozen=True)
class EntryPoint:
    """The entry point of a job, and what its callers may ask for."""

    origin: str = "seatrial"
    model_urls: ModelUrls | None = None
    """The allowed addresses of models. ``None`` at the command line, where every address is allowed."""


COMMAND_LINE = EntryPoint()


@dataclass(frozen=True)
class Submission:
    """Plans, checks and stores jobs."""

    store: Store
    wake_up: WakeUp
    clock: Clock
    keys: KeyRing
    able: Capabilities
    admission: Admission
    places: Places
    budgets: BudgetRules

    def plan(
        self,
        parameters: JobParameters,
        tasks: Iterable[Task],
        entry: EntryPoint = COMMAND_LINE,
        *,
        instruction: str | None = None,
        own_keys: bool = True,
    ) -> JobSpec:
        """The job for a request and its tasks. Raises if the entry point does not allow it."""
        more = {"origin": entry.origin, "instruction": instruction, "own_keys": own_keys}
        spec = parameters.spec(tasks, self.able.takes_model, self.able.default_sandbox).model_copy(update=more)
        if entry.model_urls is None:
            return spec
        refuse_keys(parameters)
        return entry.model_urls.admit(spec)

    async def check(
        self, spec: JobSpec, given_keys: Collection[str] | None = (), tasks: Sequence[Task] | None = None
    ) -> list[Task]:
        """Returns the tasks of the job. Raises if the job cannot run, and says what to change.

        ``given_keys`` are the names of keys that come with the job. ``None`` skips the check of keys. ``tasks`` are the
        job's tasks if the library does not have them yet."""
        spec = self.admission.signed(spec)
        if not spec.tasks:
            raise InvalidInput("The job has no task.", field="tasks", fix="Loosen the filters or add a task.")
        await self.check_setup(spec, given_keys)
        if tasks is None:
            tasks = await self.store.tasks.get_many([ref.digest for ref in spec.tasks])
        for task in tasks:
            await self._check_services(task, spec)
            refuse_unfit(task, spec)
            self.admission.check_task(spec, task)
        await self.places.require(spec, tasks)
        return list(tasks)

    async def check_setup(self, spec: JobSpec, given_keys: Collection[str] | None = ()) -> None:
        """Checks all of a job except its tasks."""
        spec = self.admission.signed(spec)
        if not spec.agents:
            raise InvalidInput("The job has no agent.", field="agents", fix="Name one, for example oracle.")
        if not self.able.has_sandbox(spec.sandbox):
            raise InvalidInput(
                f"There is no sandbox {spec.sandbox!r}.",
                field="sandbox",
                fix="Use auto, oci, docker, harbor:<environment of Harbor> or pkg.mod:Class.",
            )
        if spec.until_settled is not None and len(spec.agents) != 2:
            raise InvalidInput(
                f"Only two configurations can run until it is settled which is better; the job has {len(spec.agents)}.",
                field="until_settled",
                fix="Name two agents, or one agent with two models.",
            )
        for agent in spec.agents:
            self._check_agent(agent)
        self.admission.check(spec)
        self.budgets.check(spec)
        await check_replay(self.store.trials, spec)
        if given_keys is not None:
            await self.keys.require(spec, given_keys)

    async def submit(
        self, spec: JobSpec, keys: Mapping[str, str] = MappingProxyType({}), once: Once | None = None
    ) -> Job:
        """``keys`` are for this job only. With ``once``, a repetition returns the first job."""
        spec = self.admission.signed(spec)
        tasks = await self.check(spec, tuple(keys))
        sealed = self.keys.sealed(keys)
        rule = spec.until_settled
        if rule is not None and rule.seed is None:
            rule = rule.model_copy(update={"seed": secrets.randbits(48)})
            spec = spec.model_copy(update={"until_settled": rule})
        trials, now = tuple(plan(spec, demands_of(spec, tasks))), self.clock()
        job = await self.store.jobs.create(spec, trials, now, hold=rule is not None, keys=sealed, once=once)
        await Settler(self.store, self.wake_up, self.clock).step(job)
        await self.wake_up.announce(len(trials))
        return job

    async def prepare(self, spec: JobSpec, once: Once | None = None) -> Job:
        """Stores a job whose trials wait for a release, which may bring keys."""
        spec = self.admission.signed(spec)
        trials = tuple(plan(spec, demands_of(spec, await self.check(spec, None))))
        return await self.store.jobs.create(spec, trials, self.clock(), hold=True, once=once)

    def _check_agent(self, agent: AgentSpec) -> None:
        if ":" not in agent.name and agent.name not in self.able.agent_names():
            near = did_you_mean(agent.name, self.able.agent_names())
            raise InvalidInput(
                f"There is no agent {agent.name!r}.",
                field="agent",
                fix=f"{near} `seatrial agents` lists them; your own goes by import path, pkg.mod:Class.".lstrip(),
            )
        if agent.model is None and self.able.needs_model(agent.name):
            raise InvalidInput(f"Agent {agent.name} needs a model.", field="model", fix="Add -m provider/model.")

    async def _check_services(self, task: Task, spec: JobSpec) -> None:
        if task.services and spec.sandbox in _OURS and not await self.able.runs_services():
            raise Unsupported(
                f"Task {task.name} has several services ({', '.join(task.services)}) and needs a container engine.",
                field="sandbox",
                fix="Start Docker or Podman, then run it with --sandbox docker.",
            )


def refuse_unfit(task: Task, spec: JobSpec) -> None:
    """Refuses a task that this job cannot run on any machine."""
    if task.os != "linux":
        raise Unsupported(f"Task {task.name} is for {task.os}; Seatrial runs Linux tasks.", field="tasks")
    if task.resources.gpus and spec.sandbox in _OURS:
        raise Unsupported(
            f"Task {task.name} needs GPUs ({task.resources.gpus}), which these sandboxes do not have.",
            field="sandbox",
            fix="Choose one of Harbor's environments that has them, for example --sandbox harbor:modal.",
        )
    if any(agent.name == "oracle" for agent in spec.agents) and not task.has_solution:
        raise InvalidInput(
            f"Task {task.name} has no solution for the oracle to run.",
            field="agents",
            fix="Leave the task out with -x, or choose another agent.",
        )
