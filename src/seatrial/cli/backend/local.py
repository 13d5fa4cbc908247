"""The backend for this machine's installation. ``backend`` documents each method."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

from seatrial.cli.backend.backend import JobRow, Plan
from seatrial.cli.backend.request import RunRequest, refuse_nothing
from seatrial.cli.backend.triage import LocalTriage
from seatrial.cli.options import split_name
from seatrial.cli.view.progress import show_progress
from seatrial.cli.view.say import say, say_notices, say_warnings
from seatrial.cli.view.summary import INTERRUPTED, exit_status, print_outcome, seconds_of
from seatrial.domain.event import Event
from seatrial.domain.job import Job, JobCounts
from seatrial.domain.model_calls.budget import Amount, Scope
from seatrial.domain.output import Output
from seatrial.domain.reports.failures import Failures
from seatrial.domain.reports.leaderboard import Leaderboard
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.progress import Progress
from seatrial.domain.reports.report import JobReport
from seatrial.domain.result import StoredFile, Try
from seatrial.domain.task import Dataset, Task
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.duties import Duties
from seatrial.engine.jobs.choice import choose, dataset_of, every_task, find_dataset, library_tasks
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.circumstances import ComparedCircumstances, compare_circumstances
from seatrial.engine.reports.comparing import Compared, ComparisonWish, compare_jobs
from seatrial.engine.reports.leaderboard import LeaderboardFilter, Leaderboards
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.reports.progress import progress_of
from seatrial.engine.reports.reporting import failures_of, report_job
from seatrial.engine.reports.trend import trend_of
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.errors import InvalidInput, NotFound
from seatrial.installed import is_installed
from seatrial.ports.store import JobFilter, Page, TrialFilter, TrialRow
from seatrial.ports.tasks import Inspection
from seatrial.shapes.datasets import DatasetItem
from seatrial.shapes.tasks import TaskItem
from seatrial.system.processes import on_signals
from seatrial.wiring import Installation, import_dataset, make_worker
from seatrial.worker import Worker

_LOOK_EVERY_SEC = 0.2
_PACE_EVERY_LOOKS = 5
"""The pace costs the store more than the counts."""

Hire = Callable[[int, int], Worker]
"""From a capacity (0: as many as fit) and a job id to a worker that runs only that job."""


@dataclass(frozen=True)
class LocalRuns:
    """Each run has its own worker in this process."""

    here: Installation
    hire: Hire
    """Creates that worker."""

    async def plan(self, request: RunRequest) -> Plan:
        async with self.here.library.candidates(_paths(request)) as found:
            return await self._planned(request, found.tasks)

    async def submit(self, request: RunRequest) -> Job:
        async with self.here.library.candidates(_paths(request)) as found:
            plan = await self._planned(request, found.tasks)
            await found.add()
        return await self.here.submission.submit(plan.spec)

    async def resume(self, job: Job) -> int:
        return await self.here.jobs.resume(job.id)

    async def retry(self, job: Job, outcomes: Sequence[Outcome]) -> int:
        return await self.here.jobs.retry(job.id, outcomes)

    async def add_attempts(self, job: Job, outcomes: Sequence[Outcome], trials: Sequence[int] | None) -> list[int]:
        return await self.here.jobs.add_attempts(job.id, outcomes, trials)

    async def follow_to_end(self, job: Job, as_json: bool) -> int:
        """An interrupt stops the worker and requeues running trials. Ended trials are kept."""
        started = time.monotonic()
        worker = self.hire(job.spec.concurrency or self.here.settings.concurrency, job.id)
        interrupted = await _drive(self.here, worker, job, quiet=as_json)
        rows = [row async for row in self.here.store.trials.each(TrialFilter(job_id=job.id))]
        report = await report_job(self.here.store.trials, job)
        print_outcome(job, report, rows, time.monotonic() - started, as_json)
        if interrupted:
            say(f"Interrupted. Continue with: seatrial job resume {job.id}", err=True)
            return INTERRUPTED
        return exit_status(rows)

    async def watch(self, job: Job, as_json: bool) -> int:
        await self._say_if_nothing_runs_it(job)
        watching = asyncio.create_task(_until_ended(self.here, job, quiet=as_json))
        with on_signals(watching.cancel), contextlib.suppress(asyncio.CancelledError):
            await watching
        if watching.cancelled():
            say(f"Job {job.id} continues. Follow it again with: seatrial job watch {job.id}", err=True)
            return INTERRUPTED
        job = await self.here.store.jobs.get(job.id)
        rows = [row async for row in self.here.store.trials.each(TrialFilter(job_id=job.id))]
        report = await report_job(self.here.store.trials, job)
        print_outcome(job, report, rows, seconds_of(job, self.here.clock()), as_json)
        return exit_status(rows)

    @property
    def program(self) -> str:
        return "seatrial"

    async def _say_if_nothing_runs_it(self, job: Job) -> None:
        if obstacle := await self.here.places.obstacle(job.id):
            say_notices([f"Job {job.id}: {obstacle} {self.advice(job)}"])

    def advice(self, job: Job) -> str:
        return f"Run them with `seatrial worker` or `seatrial job resume {job.id}`."

    async def _planned(self, request: RunRequest, given: Sequence[Task]) -> Plan:
        """Checks everything. Adds nothing to the library, except a dataset that must be imported."""
        submission = self.here.submission
        setup = submission.plan(request, ())
        for agent in setup.agents:
            _refuse_missing_module(agent.name)
        await submission.check_setup(setup)
        if request.dataset is not None:
            await import_if_unknown(self.here, request.dataset)
        tasks = await choose(self.here.store.tasks, request.library, request.dataset, request.selection, given)
        spec = submission.plan(request, tasks)
        say_warnings(given)
        return Plan(spec, await submission.check(spec, tasks=tasks))


@dataclass(frozen=True)
class LocalJobs:
    here: Installation

    async def page(self, limit: int, before: int | None) -> list[JobRow]:
        listing = JobListing(self.here.store.jobs)
        lines = await listing.page(Page(limit=limit, before=before), JobFilter(), with_score=True)
        return [JobRow.of(line.job, line.counts, line.scores.items if line.scores else ()) for line in lines]

    async def get(self, job_id: int) -> tuple[Job, JobCounts]:
        job = await self.here.store.jobs.get(job_id)
        return job, (await self.here.store.jobs.counts([job_id]))[job_id]

    async def spent(self, job_id: int) -> Amount:
        scope = Scope.of_job(job_id)
        return (await self.here.store.budgets.spending([scope]))[scope.name].spent

    async def rows(self, job_id: int) -> list[TrialRow]:
        await self.here.store.jobs.get(job_id)  # raises for an unknown job
        return [row async for row in self.here.store.trials.each(TrialFilter(job_id=job_id))]

    async def cancel(self, job_id: int) -> int:
        return await self.here.jobs.cancel(job_id)

    async def delete(self, job_id: int) -> None:
        await self.here.jobs.delete(job_id)

    async def report(self, job_id: int, tests: bool) -> tuple[Job, JobReport]:
        job = await self.here.store.jobs.get(job_id)
        return job, await report_job(self.here.store.trials, job, with_tests=tests)

    async def failures(self, job_id: int) -> Failures:
        store = self.here.store
        return await failures_of(store.trials, await store.jobs.get(job_id))

    async def trend(self, job_id: int) -> Trend:
        jobs = self.here.store.jobs
        return await trend_of(jobs, JobListing(jobs), await jobs.get(job_id))

    async def leaderboard(self, chosen: LeaderboardFilter) -> Leaderboard:
        store, ended = self.here.store, EndedJobs()
        return await Leaderboards(store, JobListing(store.jobs, ended), ended).leaderboard(chosen)

    async def compare(self, wish: ComparisonWish) -> Compared:
        return await compare_jobs(self.here.store, wish)

    async def circumstances(self, wish: ComparisonWish) -> ComparedCircumstances:
        return await compare_circumstances(self.here.store, wish)


@dataclass(frozen=True)
class LocalTrials:
    here: Installation

    async def get(self, trial_id: int) -> tuple[TrialRow, Sequence[Try]]:
        return await self.here.store.trials.get(trial_id), await self.here.store.trials.tries(trial_id)

    async def files(self, trial_id: int, number: int | None) -> KeptFiles:
        return await TryFiles(self.here.store.trials, self.here.blobs).kept(trial_id, number)

    def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]:
        return self.here.blobs.stream(kept.key(file))

    async def events(self, trial_id: int, follow: bool) -> AsyncIterator[Event | Output]:
        last_event = last_output = 0
        while True:
            ended = (await self.here.store.trials.get(trial_id)).trial.state is TrialState.ENDED
            while found := await self.here.store.events.read(last_event, trial_id=trial_id):
                last_event = found[-1].seq
                for event in found:
                    yield event
            while follow and (pieces := await self.here.store.output.read([trial_id], last_output)):
                last_output = pieces[-1].seq
                for piece in pieces:
                    yield piece
            if ended or not follow:
                return
            await asyncio.sleep(_LOOK_EVERY_SEC)


@dataclass(frozen=True)
class LocalTasks:
    here: Installation

    async def inspect(self, path: Path) -> list[Inspection]:
        return await self.here.library.inspect(path)

    async def add(self, path: Path) -> list[Task]:
        return await self.here.library.add(path)

    async def all(self) -> list[TaskItem]:
        return [TaskItem.of(task) async for task in every_task(self.here.store.tasks)]

    async def get(self, name: str) -> Task:
        return (await library_tasks(self.here.store.tasks, [name]))[0]


@dataclass(frozen=True)
class LocalDatasets:
    here: Installation

    async def all(self) -> list[DatasetItem]:
        return [DatasetItem.of(dataset) for dataset in await self.here.store.tasks.datasets()]

    async def get(self, name: str, version: str | None) -> Dataset:
        return await find_dataset(self.here.store.tasks, name, version)

    async def save(self, name: str, version: str, tasks: Sequence[Task], description: str) -> Dataset:
        dataset = dataset_of(name, version, description, sorted(tasks, key=lambda task: task.name))
        return await self.here.store.tasks.save_dataset(dataset, self.here.clock())

    async def take_in(self, name: str, version: str | None, registry: str | None) -> Dataset:
        source = registry or self.here.settings.registry
        if not source:
            problem = f"No registry is configured to look up {name}."
            raise InvalidInput(problem, field="registry", fix="Give --registry FILE.")
        return await import_dataset(self.here, source, name, version, at_the_machine=True)


@dataclass(frozen=True)
class LocalBackend:
    runs: LocalRuns
    jobs: LocalJobs
    trials: LocalTrials
    tasks: LocalTasks
    datasets: LocalDatasets
    triage: LocalTriage

    @classmethod
    def at(cls, here: Installation) -> Self:
        runs = LocalRuns(here, lambda capacity, job_id: make_worker(here, capacity, job_id))
        return cls(
            runs, LocalJobs(here), LocalTrials(here), LocalTasks(here), LocalDatasets(here), LocalTriage.at(here)
        )


async def _drive(here: Installation, worker: Worker, job: Job, quiet: bool) -> bool:
    """Runs the worker until all trials of the job have ended; returns whether it was interrupted."""
    working = asyncio.create_task(worker.run(), name="worker")
    watching = asyncio.create_task(_until_ended(here, job, quiet), name="watch")
    interrupt = asyncio.Event()
    interrupting = asyncio.create_task(interrupt.wait())
    with on_signals(interrupt.set):
        try:
            await asyncio.wait({working, watching, interrupting}, return_when=asyncio.FIRST_COMPLETED)
            if interrupt.is_set():
                working.cancel()
            else:
                worker.leave()
            with contextlib.suppress(asyncio.CancelledError):
                await working
        finally:
            for task in (watching, interrupting, working):
                task.cancel()
            await asyncio.gather(watching, interrupting, working, return_exceptions=True)
    return interrupt.is_set()


async def _until_ended(here: Installation, job: Job, quiet: bool) -> None:
    """A look that fails is repeated: a run must not end with trials left because they could not be counted once."""
    duties, looks = Duties(here.clock), count()
    pace: tuple[Progress, Amount] | None = None
    with show_progress(job, quiet) as show:

        async def look() -> bool:
            nonlocal pace
            counts = (await here.store.jobs.counts([job.id]))[job.id]
            if pace is None or next(looks) % _PACE_EVERY_LOOKS == 0 or counts.done:
                found = await progress_of(here.store.jobs, job, counts, here.clock())
                [spending, *_] = await here.cap_usages.of_job(job.id, job.spec, here.clock())
                pace = found, spending.spending.spent
            show(counts, *pace)
            held_back = counts.held and job.spec.until_settled is not None  # the next trials are released in a moment
            return not counts.moving and not held_back

        while True:
            if await duties.once("progress", look):
                return
            await asyncio.sleep(_LOOK_EVERY_SEC)


def _paths(request: RunRequest) -> tuple[Path, ...]:
    refuse_nothing(request)
    return request.paths


async def import_if_unknown(here: Installation, name: str) -> None:
    """Imports an unregistered dataset from the configured registry."""
    if not here.settings.registry:
        return
    try:
        await here.store.tasks.dataset(*split_name(name))
    except NotFound:
        await import_dataset(here, here.settings.registry, *split_name(name), at_the_machine=True)


def _refuse_missing_module(agent: str) -> None:
    """Refuses an agent by import path (``pkg.mod:Class``) if Python cannot find its module."""
    module, colon, _ = agent.partition(":")
    if colon and not is_installed(agent):
        raise InvalidInput(
            f"Cannot find the module {module} of the agent {agent}.",
            field="agent",
            fix="Set its location: PYTHONPATH=FOLDER seatrial run ….",
        )
