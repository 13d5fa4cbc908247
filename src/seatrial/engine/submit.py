"""Submitting a job: everything that can be known to be wrong is said now, in one sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.task import Task
from seatrial.engine.clock import Clock
from seatrial.errors import InvalidInput, MissingKey, Unsupported
from seatrial.ports.queue import Queue
from seatrial.ports.store import Store


class Submission:
    """Checks and stores jobs. What it needs to know about agents and models comes in as small functions."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        clock: Clock,
        agent_names: Callable[[], Sequence[str]],
        needs_model: Callable[[str], bool],
        keys_for: Callable[[str], tuple[str, ...]],
        key_is_set: Callable[[str], bool],
        can_run_services: Callable[[str], bool],
        has_sandbox: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._agent_names = agent_names
        self._needs_model = needs_model
        self._keys_for = keys_for
        self._key_is_set = key_is_set
        self._can_run_services = can_run_services
        self._has_sandbox = has_sandbox

    async def check(self, spec: JobSpec) -> list[Task]:
        """The job's tasks, if all of it can run; else the error that says what to change."""
        if not spec.tasks:
            raise InvalidInput("The job has no task.", field="tasks", fix="Loosen the filters or add a task.")
        if not spec.agents:
            raise InvalidInput("The job has no agent.", field="agents", fix="Name one, for example oracle.")
        if not self._has_sandbox(spec.sandbox):
            raise InvalidInput(
                f"There is no sandbox {spec.sandbox!r}.",
                field="sandbox",
                fix="Use auto, oci, docker, harbor:<environment of Harbor> or pkg.mod:Class.",
            )
        for agent in spec.agents:
            self._check_agent(agent)
        tasks = [await self._store.task(ref.digest) for ref in spec.tasks]
        for task in tasks:
            self._check_task(task, spec)
        return tasks

    async def submit(self, spec: JobSpec) -> Job:
        await self.check(spec)
        job = await self._store.create_job(spec, tuple(plan(spec)), self._clock())
        await self._queue.announce(())
        return job

    def _check_agent(self, agent: AgentSpec) -> None:
        if ":" not in agent.name and agent.name not in self._agent_names():
            raise InvalidInput(
                f"There is no agent {agent.name!r}.",
                field="agent",
                fix="`seatrial agents` lists them; your own goes by import path, pkg.mod:Class.",
            )
        if agent.model is None:
            if self._needs_model(agent.name):
                raise InvalidInput(f"Agent {agent.name} needs a model.", field="model", fix="Add -m provider/model.")
            return
        keys = self._keys_for(agent.model)
        given = any(self._key_is_set(key) or key in agent.env for key in keys)
        if keys and not given and "api_base" not in agent.options:
            raise MissingKey(
                f"Model {agent.model} needs a key and none is set.", field="model", fix=f"Set {' or '.join(keys)}."
            )

    def _check_task(self, task: Task, spec: JobSpec) -> None:
        if task.os != "linux":
            raise Unsupported(f"Task {task.name} is for {task.os}; Seatrial runs Linux tasks.", field="tasks")
        ours = spec.sandbox in ("auto", "oci", "docker")
        if task.resources.gpus and ours:
            raise Unsupported(
                f"Task {task.name} needs {task.resources.gpus} GPU(s), which these sandboxes cannot give.",
                field="sandbox",
                fix="Choose one of Harbor's environments that has them, for example --sandbox harbor:modal.",
            )
        if task.services and ours and not self._can_run_services(spec.sandbox):
            raise Unsupported(
                f"Task {task.name} has several services ({', '.join(task.services)}) and needs a container engine.",
                field="sandbox",
                fix="Start Docker or Podman, then run it with --sandbox docker.",
            )
        if any(agent.name == "oracle" for agent in spec.agents) and not task.has_solution:
            raise InvalidInput(
                f"Task {task.name} has no solution for the oracle to run.",
                field="agents",
                fix="Leave the task out with -x, or choose another agent.",
            )
