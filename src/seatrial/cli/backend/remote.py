"""The backend for a remote service. ``backend`` documents each method. Converts API models to domain values."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from seatrial.cli.backend.backend import JobRow
from seatrial.cli.backend.remote_runs import RemoteRuns
from seatrial.cli.backend.remote_values import counts_of, inspections_of, job_of, row_of, tries_of
from seatrial.cli.backend.triage import RemoteTriage
from seatrial.cli.options import split_name
from seatrial.client import AsyncClient, DatasetRequest
from seatrial.domain.event import Event
from seatrial.domain.job import Job, JobCounts
from seatrial.domain.model_calls.budget import Amount
from seatrial.domain.output import Output
from seatrial.domain.reports.failures import Failures
from seatrial.domain.reports.leaderboard import Leaderboard
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.report import JobReport
from seatrial.domain.result import StoredFile, Try
from seatrial.domain.task import Dataset, Task
from seatrial.domain.trial import TrialState
from seatrial.engine.jobs.choice import no_task
from seatrial.engine.reports.circumstances import ComparedCircumstances
from seatrial.engine.reports.comparing import Compared, ComparisonWish
from seatrial.engine.reports.leaderboard import LeaderboardFilter
from seatrial.engine.trials.trial_files import KeptFiles, choose_ended
from seatrial.errors import InvalidInput
from seatrial.ports.store import TrialRow
from seatrial.ports.tasks import Inspection
from seatrial.settings import Settings
from seatrial.shapes.datasets import DatasetItem
from seatrial.shapes.tasks import TaskItem

_PIECE = 1 << 20


@dataclass(frozen=True)
class RemoteJobs:
    client: AsyncClient

    async def page(self, limit: int, before: int | None) -> list[JobRow]:
        found: list[JobRow] = []
        async for job in self.client.jobs.list(before=before, page_size=min(limit, 500), with_score=True):
            row = JobRow(
                id=job.id,
                name=job.name,
                counts=counts_of(job),
                created_at=job.created_at,
                cancelled_at=job.cancelled_at,
                scores=tuple(job.scores or ()),
            )
            found.append(row)
            if len(found) == limit:
                break
        return found

    async def get(self, job_id: int) -> tuple[Job, JobCounts]:
        found = await self.client.jobs.get(job_id)
        return job_of(found), counts_of(found)

    async def spent(self, job_id: int) -> Amount:
        return (await self.client.jobs.get(job_id)).spending.spent.amount

    async def rows(self, job_id: int) -> list[TrialRow]:
        return [row_of(found) async for found in self.client.trials.results(job_id)]

    async def cancel(self, job_id: int) -> int:
        return await self.client.jobs.cancel(job_id)

    async def delete(self, job_id: int) -> None:
        await self.client.jobs.delete(job_id)

    async def report(self, job_id: int, tests: bool) -> tuple[Job, JobReport]:
        job, _ = await self.get(job_id)
        return job, await self.client.jobs.report(job_id, tests=tests)

    async def failures(self, job_id: int) -> Failures:
        return await self.client.jobs.failures(job_id)

    async def trend(self, job_id: int) -> Trend:
        return await self.client.jobs.trend(job_id)

    async def leaderboard(self, chosen: LeaderboardFilter) -> Leaderboard:
        return await self.client.jobs.leaderboard(**dict(chosen))

    async def compare(self, wish: ComparisonWish) -> Compared:
        found = await self.client.jobs.comparison(
            *wish.sides, basis=wish.basis, by_name=wish.by_name, every_pair=wish.every_pair
        )
        return found.compared

    async def circumstances(self, wish: ComparisonWish) -> ComparedCircumstances:
        return await self.client.jobs.circumstances(
            *wish.sides, basis=wish.basis, by_name=wish.by_name, every_pair=wish.every_pair
        )


@dataclass(frozen=True)
class RemoteTrials:
    client: AsyncClient

    async def get(self, trial_id: int) -> tuple[TrialRow, Sequence[Try]]:
        found = await self.client.trials.get(trial_id)
        return row_of(found), tries_of(found)

    async def files(self, trial_id: int, number: int | None) -> KeptFiles:
        _, tries = await self.get(trial_id)
        chosen = choose_ended(tries, trial_id, number)
        files = await self.client.trials.files(trial_id, chosen.number)
        left_out = chosen.result.files_left_out if chosen.result else None
        return KeptFiles(trial_id=trial_id, try_number=chosen.number, files=tuple(files), left_out=left_out)

    async def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]:
        """Through a file on disk: it may be larger than memory."""
        with tempfile.TemporaryDirectory(prefix="seatrial-file-") as scratch:
            target = Path(scratch) / "file"
            await self.client.trials.download(kept.trial_id, file.path, target, kept.try_number)
            with target.open("rb") as content:
                while piece := await asyncio.to_thread(content.read, _PIECE):
                    yield piece

    async def events(self, trial_id: int, follow: bool) -> AsyncIterator[Event | Output]:
        """The service's stream ends with the trial. Of a trial that runs, only ``follow`` gives something."""
        row, _ = await self.get(trial_id)
        if row.trial.state is not TrialState.ENDED and not follow:
            return
        async for message in self.client.events.trial(trial_id):
            if isinstance(message.body, Event) or (follow and isinstance(message.body, Output)):
                yield message.body


@dataclass(frozen=True)
class RemoteTasks:
    client: AsyncClient

    async def inspect(self, path: Path) -> list[Inspection]:
        return inspections_of(await self.client.tasks.validate(path))

    async def add(self, path: Path) -> list[Task]:
        taken = await self.client.tasks.upload(path)
        refused = [item.error for item in taken if item.error is not None]
        if refused:
            raise InvalidInput("\n".join(f"{each.message} {each.fix}".strip() for each in refused), field="tasks")
        return [task for item in taken for task in item.tasks]

    async def all(self) -> list[TaskItem]:
        return [task async for task in self.client.tasks.list(page_size=500)]

    async def get(self, name: str) -> Task:
        if name.startswith("sha256:"):
            return await self.client.tasks.get(name)
        async for found in self.client.tasks.list(name=name, latest=True):
            return await self.client.tasks.get(found.digest)
        raise no_task(name, [task.name for task in await self.all()])


@dataclass(frozen=True)
class RemoteDatasets:
    client: AsyncClient

    async def all(self) -> list[DatasetItem]:
        return await self.client.datasets.list()

    async def get(self, name: str, version: str | None) -> Dataset:
        return await self.client.datasets.get(name, version)

    async def tasks(self, name: str) -> list[Task]:
        """The tasks of ``NAME`` or ``NAME@VERSION``, in pages, all of the same version."""
        found = await self.get(*split_name(name))
        return [task async for task in self.client.datasets.tasks(found.name, found.version, page_size=500)]

    async def save(self, name: str, version: str, tasks: Sequence[Task], description: str) -> Dataset:
        digests = [task.digest for task in sorted(tasks, key=lambda task: task.name)]
        wanted = DatasetRequest(name=name, version=version, description=description, tasks=digests)
        return await self.client.datasets.create(wanted)

    async def take_in(self, name: str, version: str | None, registry: str | None) -> Dataset:
        if registry:
            problem = "A service imports only from its own configured registry."
            raise InvalidInput(problem, field="registry", fix="Omit --registry, or import without --server.")
        return await self.client.datasets.take_in(name, version)


@dataclass(frozen=True)
class RemoteBackend:
    runs: RemoteRuns
    jobs: RemoteJobs
    trials: RemoteTrials
    tasks: RemoteTasks
    datasets: RemoteDatasets
    triage: RemoteTriage

    @classmethod
    def at(cls, client: AsyncClient, settings: Settings) -> Self:
        jobs, tasks, datasets = RemoteJobs(client), RemoteTasks(client), RemoteDatasets(client)

        runs = RemoteRuns(client, settings, jobs.rows, tasks.inspect, tasks.add, tasks.get, datasets.tasks)
        return cls(runs, jobs, RemoteTrials(client), tasks, datasets, RemoteTriage(client))
