"""The leaderboard over everything in the store. Used by the API, the page and the command line.

Counted from tallies, never from single trials; what was worked out about ended jobs is remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import batched

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobSpec
from seatrial.domain.reports.figures import plural
from seatrial.domain.reports.leaderboard import Board, JobScore, Leaderboard, entry, ranked
from seatrial.domain.reports.rules import TERMINAL_BENCH, PlanChanges, check_rules
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.task import Dataset
from seatrial.domain.trial import Mark
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.configurations import Configuration, configurations_of, labels_over_jobs
from seatrial.engine.reports.listing import JobListing, ScoreLines, counts_by_task
from seatrial.engine.reports.reporting import configuration_labels, task_names
from seatrial.engine.reports.trend import task_set
from seatrial.ports.store import ConfigurationTotals, JobFilter, Page, Store, Tally

MOST_JOBS = 2000
_PAGE, _JOBS_AT_ONCE = 200, 50


class LeaderboardFilter(Frozen):
    dataset: str | None = None
    """``NAME`` or ``NAME@VERSION``."""
    agent: str | None = None
    model: str | None = None
    since: datetime | None = None
    """Only jobs created at this moment or later. Without a time zone: UTC."""

    def admits(self, job: Job) -> bool:
        dataset = job.spec.dataset
        named = self.dataset is None or (dataset is not None and self.dataset in (dataset, _name(dataset)))
        replays = job.spec.replay is not None  # answers that another trial got say nothing new about a model
        return named and not replays and any(self.admits_agent(each) for each in configurations_of(job.spec))

    def admits_agent(self, each: Configuration) -> bool:
        return self.agent in (None, each.agent.name) and self.model in (None, each.agent.model)

    def is_over(self, job: Job) -> bool:
        """Whether this job and all before it are too old."""
        if self.since is None:
            return False
        since = self.since if self.since.tzinfo else self.since.replace(tzinfo=UTC)
        return job.created_at < since


class _JobScores(Frozen):
    """The configurations of one job, in its order; without what depends on datasets, which may change."""

    items: tuple[JobScore, ...]


class Leaderboards:
    """One per process."""

    def __init__(self, store: Store, listing: JobListing, ended: EndedJobs, most_jobs: int = MOST_JOBS) -> None:
        """``most_jobs``: the newest jobs that are looked at."""
        self._store, self._listing, self._ended = store, listing, ended
        self._most_jobs, self._page = most_jobs, min(most_jobs, _PAGE)

    async def leaderboard(self, chosen: LeaderboardFilter) -> Leaderboard:
        jobs, older = await self._jobs(chosen)
        by_job = await self._scores_of(jobs)
        datasets = {dataset.id: dataset for dataset in await self._store.tasks.datasets()}
        boards: dict[tuple[str, frozenset[str]], list[Job]] = {}
        for job in jobs:
            boards.setdefault((_name(job.spec.dataset or ""), task_set(job.spec)), []).append(job)
        labels = labels_over_jobs(each for job in jobs for each in configurations_of(job.spec))
        made = [_board(group, by_job, datasets, chosen, labels) for group in boards.values()]
        return Leaderboard(
            rules=TERMINAL_BENCH.name,
            version=TERMINAL_BENCH.version,
            boards=tuple(sorted(_distinct(made), key=lambda board: (board.dataset is None, board.label))),
            jobs=len(jobs),
            older=older,
        )

    async def _jobs(self, chosen: LeaderboardFilter) -> tuple[list[Job], int]:
        """The jobs that were looked at and match, newest first, and how many older ones were not looked at."""
        found: list[Job] = []
        looked_at, before = 0, None
        while looked_at < self._most_jobs:
            page = await self._store.jobs.page(Page(limit=self._page, before=before))
            found += [job for job in page if chosen.admits(job) and not chosen.is_over(job)]
            looked_at += len(page)
            if len(page) < self._page or chosen.is_over(page[-1]):
                return found, 0
            before = page[-1].id
        return found, await self._store.jobs.count(JobFilter()) - looked_at

    async def _scores_of(self, jobs: Sequence[Job]) -> dict[int, _JobScores]:
        known = {job.id: found for job in jobs if (found := self._ended.get(job, _JobScores)) is not None}
        for some in batched([job for job in jobs if job.id not in known], _JOBS_AT_ONCE):
            ids = [job.id for job in some]
            tallies = await self._store.jobs.tallies(ids)
            totals = await self._store.jobs.configuration_totals(ids)
            for line in await self._listing.lines(some, with_score=True):
                job, scores = line.job, line.scores or ScoreLines(items=())
                # In a thread: other requests do not wait for thousands of tallies.
                known[job.id] = await asyncio.to_thread(_of_job, job, scores, tallies[job.id], totals[job.id])
                self._ended.put(job, known[job.id])
        return known


def _of_job(
    job: Job, scores: ScoreLines, tallies: Sequence[Tally], totals: Sequence[ConfigurationTotals]
) -> _JobScores:
    lines = {line.label: line for line in scores.items}
    sums = {each.agent_index: each for each in totals}
    labels = configuration_labels(job.spec.agents)
    return _JobScores(
        items=tuple(
            _job_score(
                job,
                index,
                lines.get(label, ScoreLine(label=label)),
                [tally for tally in tallies if tally.agent_index == index],
                sums.get(index, ConfigurationTotals(agent_index=index)),
            )
            for index, label in enumerate(labels)
        )
    )


def _job_score(job: Job, index: int, line: ScoreLine, tallies: Sequence[Tally], sums: ConfigurationTotals) -> JobScore:
    alone = job.spec.model_copy(update={"agents": (job.spec.agents[index],)})
    counts = counts_by_task(tallies)
    if sums.unlimited:
        first = next(iter(counts))
        counts[first] = counts[first].model_copy(update={"marks": {Mark.LIMITS_NOT_ENFORCED.value: sums.unlimited}})
    changed = PlanChanges.of(alone, planned=sum(each.planned for each in counts.values()), added=sums.added)
    names = task_names(job.spec.tasks)
    check = check_rules(alone, [{names.get(digest, digest): each for digest, each in counts.items()}], changed)
    why_not = [f"{rule.rule}: {rule.found}" for rule in check.broken]
    if line.so_far:
        why_not.append(f"every trial ended: {line.ended} of {line.planned} have")
    cancelled = sum(each.cancelled for each in counts.values())
    stopped = (f"{plural(cancelled, 'planned trial')} cancelled.",) if cancelled else ()
    return JobScore(
        job=job.id,
        name=job.title,
        created_at=job.created_at,
        score=line,
        attempts=job.spec.attempts,
        cost_usd=sums.cost_usd,
        priced=sums.priced,
        cost_per_trial=sums.cost_usd / sums.priced if sums.cost_usd is not None and sums.priced else None,
        why_not=tuple(why_not),
        notices=(*changed.sentences, *stopped),
    )


def _board(
    jobs: Sequence[Job],
    by_job: Mapping[int, _JobScores],
    datasets: Mapping[str, Dataset],
    chosen: LeaderboardFilter,
    labels: Mapping[str, str],
) -> Board:
    """``jobs``: with the same tasks of the same dataset. ``labels``: of configurations, the same on every board."""
    found: dict[str, list[JobScore]] = {}
    known: dict[str, Configuration] = {}
    for job in jobs:
        missing = _not_the_dataset(job.spec, datasets)
        for each, job_score in zip(configurations_of(job.spec), by_job[job.id].items, strict=True):
            if chosen.admits_agent(each):
                known[each.key] = each
                found.setdefault(each.key, []).append(_judged(job_score, missing, labels[each.key]))
    entries = [
        entry(labels[key], known[key].agent.name, known[key].agent.model, of_key) for key, of_key in found.items()
    ]
    dataset = max((job.spec.dataset or "" for job in jobs), key=len) or None
    tasks = len(task_set(jobs[0].spec))
    label = f"{dataset or _some_names(jobs[0].spec)}, {plural(tasks, 'task')}"
    return Board(label=label, dataset=dataset, tasks=tasks, entries=ranked(entries))


def _judged(job_score: JobScore, missing: str | None, label: str) -> JobScore:
    why_not = (*job_score.why_not, *((missing,) if missing else ()))
    if job_score.score.value is None:
        why_not = (*why_not, "a score: no trial has a valid result")
    score = job_score.score.model_copy(update={"label": label})
    return job_score.model_copy(update={"why_not": why_not, "eligible": not why_not, "score": score})


def _not_the_dataset(spec: JobSpec, datasets: Mapping[str, Dataset]) -> str | None:
    """Why the tasks of a job are not those of a whole dataset."""
    if spec.dataset is None:
        return "a whole dataset: the job named tasks"
    versions = [each for each in datasets.values() if spec.dataset in (each.id, each.name)]
    if not versions:
        return f"a whole dataset: {spec.dataset} is not registered any more"
    tasks = task_set(spec)
    if any({ref.digest for ref in each.tasks} == tasks for each in versions):
        return None
    return f"a whole dataset: {plural(len(tasks), 'task')} instead of its {len(versions[-1].tasks)}, or other content"


def _distinct(boards: Sequence[Board]) -> list[Board]:
    """Other tasks of the same dataset make another board; a number tells them apart."""
    times: dict[str, int] = {}
    named = []
    for board in boards:
        times[board.label] = times.get(board.label, 0) + 1
        label = board.label if times[board.label] == 1 else f"{board.label} ({times[board.label]})"
        named.append(board.model_copy(update={"label": label}))
    return named


def _some_names(spec: JobSpec) -> str:
    names = sorted({ref.name for ref in spec.tasks})
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "")


def _name(dataset: str) -> str:
    return dataset.partition("@")[0]
