"""Submitting a job: everything that can be known to be wrong is said now, in one sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.task import Task
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.keys import KeyRing
from seatrial.errors import InvalidInput, MissingKey, Unsupported
from seatrial.ports.queue import Queue
from seatrial.ports.store import Once, Store


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
        keys: KeyRing,
        can_run_services: Callable[[str], bool],
        has_sandbox: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._agent_names = agent_names
        self._needs_model = needs_model
        self._keys_for = keys_for
        self._keys = keys
        self._can_run_services = can_run_services
        self._has_sandbox = has_sandbox

    async def check(self, spec: JobSpec, given_keys: Collection[str] | None = ()) -> list[Task]:
        """The job's tasks, if all of it can run; else the error that says what to change.

        ``given_keys`` are names of keys that come with the job; ``None`` leaves keys to be looked for later."""
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
        if given_keys is not None:
            await self.check_keys(spec, given_keys)
        tasks = await self._store.tasks([ref.digest for ref in spec.tasks])
        for task in tasks:
            self._check_task(task, spec)
        return tasks

    async def submit(
        self, spec: JobSpec, keys: Mapping[str, str] = MappingProxyType({}), once: Once | None = None
    ) -> Job:
        """``keys`` come with this job alone. With ``once``, a repetition gives the job that was made first."""
        await self.check(spec, tuple(keys))
        sealed = self._keys.sealed(keys)
        job = await self._store.create_job(spec, tuple(plan(spec)), self._clock(), keys=sealed, once=once)
        await self._queue.announce(())
        return job

    async def prepare(self, spec: JobSpec, once: Once | None = None) -> Job:
        """A job whose trials wait until ``release``; keys may come then."""
        await self.check(spec, None)
        return await self._store.create_job(spec, tuple(plan(spec)), self._clock(), hold=True, once=once)

    async def release(
        self,
        job: Job,
        trial_ids: Sequence[int],
        keys: Mapping[str, str] = MappingProxyType({}),
        limit_sec: float | None = None,
    ) -> int:
        """Queues held trials of a job; says how many there were. ``limit_sec`` is for each of them as a whole."""
        await self.check_keys(job.spec, {*keys, *await self._keys.names_of_job(job.id)})
        if (sealed := self._keys.sealed(keys)) is not None:
            await self._store.save_job_keys(job.id, sealed)
        released = await self._store.release_trials(trial_ids, self._clock(), limit_sec=limit_sec)
        await self._queue.announce(())
        return released

    async def retry(self, job: Job, trial_ids: Sequence[int], keys: Mapping[str, str] = MappingProxyType({})) -> int:
        """Queues ended trials of a job anew, and held ones; says how many. Its keys went when it ended, so that they
        may have to come again."""
        await self.check_keys(job.spec, {*keys, *await self._keys.names_of_job(job.id)})
        queued = await self._store.retry_trials(trial_ids, self._clock(), hold=True)
        if (sealed := self._keys.sealed(keys)) is not None and (queued or job.ended_at is None):
            await self._store.save_job_keys(job.id, sealed)
        released = await self._store.release_trials(trial_ids, self._clock())
        await self._queue.announce(())
        return released

    async def check_keys(self, spec: JobSpec, given: Collection[str]) -> None:
        """A missing key is one sentence now, instead of an error of every trial later."""
        there = set(given) | (await self._keys.names() if spec.own_keys else set())
        for agent in spec.agents:
            wanted = self._keys_for(agent.model) if agent.model is not None else ()
            has_one = bool(there.intersection(wanted) or set(agent.env).intersection(wanted))
            if wanted and not has_one and "api_base" not in agent.options:
                raise MissingKey(
                    f"Model {agent.model} needs a key and none is set.",
                    field="model",
                    fix=f"Set {' or '.join(wanted)}.",
                )

    def _check_agent(self, agent: AgentSpec) -> None:
        if ":" not in agent.name and agent.name not in self._agent_names():
            raise InvalidInput(
                f"There is no agent {agent.name!r}.",
                field="agent",
                fix="`seatrial agents` lists them; your own goes by import path, pkg.mod:Class.",
            )
        if agent.model is None and self._needs_model(agent.name):
            raise InvalidInput(f"Agent {agent.name} needs a model.", field="model", fix="Add -m provider/model.")

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
