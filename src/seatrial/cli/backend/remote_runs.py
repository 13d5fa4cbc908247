"""Runs on a service: uploads tasks, creates a job and follows it. The service's workers run it.

Provider keys from this machine's environment are sent as headers if the service has none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from seatrial.cli.backend.backend import Plan
from seatrial.cli.backend.remote_values import counts_of, job_of
from seatrial.cli.backend.request import RunRequest, refuse_nothing
from seatrial.cli.view.progress import Show, show_progress
from seatrial.cli.view.say import say, say_notices, say_warnings
from seatrial.cli.view.summary import INTERRUPTED, exit_status, print_outcome, seconds_of
from seatrial.client import AsyncClient, JobRequest
from seatrial.domain.agents.catalogue import keys_for, takes_model
from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.task import Task
from seatrial.domain.trial import Outcome
from seatrial.engine.jobs.choice import narrow
from seatrial.engine.jobs.estimate import Estimate
from seatrial.engine.jobs.request import JobParameters
from seatrial.engine.jobs.submit import refuse_unfit
from seatrial.engine.tasks.library import refuse_invalid
from seatrial.errors import InvalidInput, MissingKey, NotFound, StoreUnavailable
from seatrial.ports.store import TrialRow
from seatrial.ports.tasks import Inspection
from seatrial.settings import Settings
from seatrial.shapes.jobs import JobDetail
from seatrial.system.processes import on_signals

_LOOK_EVERY_SEC = 1.0


@dataclass(frozen=True)
class RemoteRuns:
    client: AsyncClient
    settings: Settings
    rows: Callable[[int], Awaitable[list[TrialRow]]]
    inspect: Callable[[Path], Awaitable[list[Inspection]]]
    add: Callable[[Path], Awaitable[list[Task]]]
    find: Callable[[str], Awaitable[Task]]
    of_dataset: Callable[[str], Awaitable[list[Task]]]

    async def plan(self, request: RunRequest) -> Plan:
        """Uploads nothing. The service estimates only if it has all of the tasks."""
        given = await self._inspected(request)
        plan = await self._planned(request, given)
        estimate = await self._estimate(_wanted(request, given), plan.spec.agents)
        return Plan(plan.spec, plan.tasks, estimate)

    async def submit(self, request: RunRequest) -> Job:
        """Uploads the tasks once everything about the job is known to be right."""
        await self._planned(request, await self._inspected(request))
        taken = [task for path in request.paths for task in await self.add(path)]
        wanted = _wanted(request, taken)
        made = await self._with_keys(
            request.matrix(takes_model), lambda keys: self.client.jobs.create(wanted, keys=keys)
        )
        return job_of(await self.client.jobs.get(made.id))

    async def resume(self, job: Job) -> int:
        return await self._with_keys(job.spec.agents, lambda keys: self.client.jobs.resume(job.id, keys=keys))

    async def retry(self, job: Job, outcomes: Sequence[Outcome]) -> int:
        return await self._with_keys(
            job.spec.agents, lambda keys: self.client.jobs.retry(job.id, outcomes=outcomes, keys=keys)
        )

    async def add_attempts(self, job: Job, outcomes: Sequence[Outcome], trials: Sequence[int] | None) -> list[int]:
        return await self._with_keys(
            job.spec.agents,
            lambda keys: self.client.jobs.add_attempts(job.id, outcomes=outcomes, trials=trials, keys=keys),
        )

    async def follow_to_end(self, job: Job, as_json: bool) -> int:
        """An interrupt leaves the job running on the service."""
        began = time.monotonic()
        if not await self._follow(job, as_json):
            return self._left_running(job)
        return await self._told(job, time.monotonic() - began, as_json)

    async def watch(self, job: Job, as_json: bool) -> int:
        if obstacle := (await self.client.jobs.get(job.id)).obstacle:
            say_notices([f"Job {job.id}: {obstacle}"])
        if not await self._follow(job, as_json):
            return self._left_running(job)
        ended = job_of(await self.client.jobs.get(job.id))
        return await self._told(ended, seconds_of(ended, datetime.now(UTC)), as_json)

    @property
    def program(self) -> str:
        return f"seatrial --server {self.client.url}"

    def advice(self, job: Job) -> str:
        return "The workers of the service run them."

    def _left_running(self, job: Job) -> int:
        follow, stop = f"{self.program} job watch {job.id}", f"{self.program} job cancel {job.id}"
        say(f"Job {job.id} continues on the service. Follow it again with: {follow}\nStop it with: {stop}", err=True)
        return INTERRUPTED

    async def _told(self, job: Job, seconds: float, as_json: bool) -> int:
        rows = await self.rows(job.id)
        report = await self.client.jobs.report(job.id)
        print_outcome(job, report, rows, seconds, as_json, self.program)
        return exit_status(rows)

    async def _inspected(self, request: RunRequest) -> list[Task]:
        """The tasks at the paths. Raises if one is invalid."""
        refuse_nothing(request)
        inspections = [found for path in request.paths for found in await self.inspect(path)]
        refuse_invalid(inspections)
        return [found.task for found in inspections if found.task is not None]

    async def _planned(self, request: RunRequest, given: Sequence[Task]) -> Plan:
        setup = _wanted(request, ())
        await self._with_keys(request.matrix(takes_model), lambda keys: self.client.jobs.check(setup, keys=keys))
        found = [*given, *[await self.find(name) for name in request.library]]
        if request.dataset is not None:
            found += await self.of_dataset(request.dataset)
        tasks = narrow(found, request.selection)
        spec = request.spec(tasks, takes_model, "auto")
        for task in tasks:
            refuse_unfit(task, spec)
        say_warnings(given)
        return Plan(spec, tasks)

    async def _estimate(self, wanted: JobRequest, agents: Sequence[AgentSpec]) -> Estimate | None:
        try:
            return await self.client.jobs.estimate(wanted, keys=await self._lacking(agents))
        except (InvalidInput, NotFound):
            return None

    async def _with_keys[Answer](
        self, agents: Sequence[AgentSpec], call: Callable[[dict[str, str]], Awaitable[Answer]]
    ) -> Answer:
        """First sends the keys that the service's model list reports as missing. That list does not cover every
        provider."""
        try:
            return await call(await self._lacking(agents))
        except MissingKey:
            ours = self._ours(agents)
            if not ours:
                raise
            return await call(ours)

    async def _lacking(self, agents: Sequence[AgentSpec]) -> dict[str, str]:
        """Local keys for models that the service has no key for."""
        if not self._ours(agents):
            return {}
        unready = {name for model in await self.client.installation.models() if not model.ready for name in model.keys}
        return {name: value for name, value in self._ours(agents).items() if name in unready}

    def _ours(self, agents: Sequence[AgentSpec]) -> dict[str, str]:
        there = self.settings.provider_keys
        wanted = [name for agent in agents if agent.model is not None for name in keys_for(agent.model)]
        return {name: there[name] for name in wanted if name in there}

    async def _follow(self, job: Job, quiet: bool) -> bool:
        """Returns whether the job ended; false after an interrupt."""
        with show_progress(job, quiet) as show:
            watching = asyncio.create_task(self._watch(job.id, show))
            with on_signals(watching.cancel), suppress(asyncio.CancelledError):
                await watching
                return True
        return False

    async def _watch(self, job_id: int, show: Show) -> JobDetail:
        """Polls the job while waiting for it, and once more after it ended."""
        waiting = asyncio.create_task(self.client.jobs.wait(job_id))
        try:
            while not waiting.done():
                with suppress(StoreUnavailable):  # the waiting task decides when to give up
                    now = await self.client.jobs.get(job_id)
                    show(counts_of(now), now.progress, now.spending.spent.amount)
                await asyncio.wait({waiting}, timeout=_LOOK_EVERY_SEC)
            ended = waiting.result()
            show(counts_of(ended), ended.progress, ended.spending.spent.amount)
            return ended
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


def _wanted(request: RunRequest, taken: Sequence[Task]) -> JobRequest:
    """The same request for the service, which finds and selects the tasks as the local backend does."""
    content = {name: getattr(request, name) for name in JobParameters.model_fields}
    content["agents"] = [agent.model_dump() for agent in request.agents]
    return JobRequest.model_validate({**content, "tasks": (*(task.digest for task in taken), *request.library)})
