"""Runs on a service: tasks go up, a job is made and followed. The service's workers do the work.

Provider keys of this machine's environment are sent, in headers, where the service says that it has none.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.cli.backend.backend import Plan
from seatrial.cli.backend.local_tasks import refuse_nothing
from seatrial.cli.backend.remote_values import counts_of, job_of
from seatrial.cli.backend.request import RunRequest
from seatrial.cli.view.progress import Show, show_progress
from seatrial.cli.view.say import say
from seatrial.cli.view.summary import INTERRUPTED, exit_status, print_outcome
from seatrial.client import AsyncClient, JobRequest
from seatrial.domain.catalogue import keys_for, takes_model
from seatrial.domain.job import AgentSpec, Job
from seatrial.domain.task import Task
from seatrial.domain.trial import Outcome
from seatrial.engine.jobs.choice import narrow
from seatrial.engine.jobs.request import JobWish
from seatrial.errors import MissingKey, StoreUnavailable
from seatrial.ports.store import TrialRow
from seatrial.settings import Settings
from seatrial.shapes.jobs import JobDetail

_LOOK_EVERY_SEC = 1.0


@dataclass(frozen=True)
class RemoteRuns:
    client: AsyncClient
    settings: Settings
    rows: Callable[[int], Awaitable[list[TrialRow]]]
    add: Callable[[Path], Awaitable[list[Task]]]
    find: Callable[[str], Awaitable[Task]]
    of_dataset: Callable[[str], Awaitable[list[Task]]]

    async def plan(self, request: RunRequest) -> Plan:
        """The tasks are taken in for it, as they are on this machine."""
        taken = await self._take_in(request)
        found = [*taken, *[await self.find(name) for name in request.library]]
        if request.dataset is not None:
            found += await self.of_dataset(request.dataset)
        tasks = narrow(found, request.selection)
        spec = request.spec(tasks, takes_model, "auto")
        keys = await self._lacking(spec.agents)
        return Plan(spec, tasks, await self.client.jobs.estimate(_wanted(request, taken), keys=keys))

    async def submit(self, request: RunRequest) -> Job:
        wanted = _wanted(request, await self._take_in(request))
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

    async def see_through(self, job: Job, as_json: bool) -> int:
        """An interrupt leaves the job to the service."""
        began = time.monotonic()
        ended = await self._follow(job, as_json)
        if not ended:
            again = f"seatrial --server {self.client.url} job"
            say(
                f"Job {job.id} goes on at the service. Follow it with: {again} resume {job.id}\n"
                f"Stop it with: {again} cancel {job.id}",
                err=True,
            )
            return INTERRUPTED
        rows = await self.rows(job.id)
        print_outcome(job, rows, time.monotonic() - began, as_json)
        return exit_status(rows)

    def advice(self, job: Job) -> str:
        return f"Follow it with `seatrial --server {self.client.url} job resume {job.id}`."

    async def _take_in(self, request: RunRequest) -> list[Task]:
        refuse_nothing(request)
        return [task for path in request.paths for task in await self.add(path)]

    async def _with_keys[Answer](
        self, agents: Sequence[AgentSpec], call: Callable[[dict[str, str]], Awaitable[Answer]]
    ) -> Answer:
        """First with what the service's list of models says it lacks; that list does not have every provider."""
        try:
            return await call(await self._lacking(agents))
        except MissingKey:
            ours = self._ours(agents)
            if not ours:
                raise
            return await call(ours)

    async def _lacking(self, agents: Sequence[AgentSpec]) -> dict[str, str]:
        """Keys of ours for models of which the service says that it has no key."""
        if not self._ours(agents):
            return {}
        unready = {name for model in await self.client.installation.models() if not model.ready for name in model.keys}
        return {name: value for name, value in self._ours(agents).items() if name in unready}

    def _ours(self, agents: Sequence[AgentSpec]) -> dict[str, str]:
        there = dict(self.settings.provider_environment)
        if self.settings.openrouter_api_key:
            there["OPENROUTER_API_KEY"] = self.settings.openrouter_api_key
        wanted = [name for agent in agents if agent.model is not None for name in keys_for(agent.model)]
        return {name: there[name] for name in wanted if name in there}

    async def _follow(self, job: Job, quiet: bool) -> bool:
        """Whether it ended; not so if somebody interrupted."""
        with show_progress(job, quiet) as show:
            watching = asyncio.create_task(self._watch(job.id, show))
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, watching.cancel)
            try:
                await watching
            except asyncio.CancelledError:
                return False
            finally:
                for number in (signal.SIGINT, signal.SIGTERM):
                    loop.remove_signal_handler(number)
        return True

    async def _watch(self, job_id: int, show: Show) -> JobDetail:
        """Looks at the job while it is waited for, and once more when it has ended."""
        waiting = asyncio.create_task(self.client.jobs.wait(job_id))
        try:
            while not waiting.done():
                with suppress(StoreUnavailable):  # the one that waits knows how long to put up with it
                    show(counts_of((await self.client.jobs.get(job_id)).counts))
                await asyncio.wait({waiting}, timeout=_LOOK_EVERY_SEC)
            ended = waiting.result()
            show(counts_of(ended.counts))
            return ended
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


def _wanted(request: RunRequest, taken: Sequence[Task]) -> JobRequest:
    """The same wish for the service, which looks up the tasks and narrows them as we would."""
    content = {name: getattr(request, name) for name in JobWish.model_fields}
    content["agents"] = [agent.model_dump() for agent in request.agents]
    return JobRequest.model_validate({**content, "tasks": (*(task.digest for task in taken), *request.library)})
