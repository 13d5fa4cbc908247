"""Jobs with their counts, totals and, on request, the score. For lists.

Everything is counted from the trials. Numbers of ended jobs are cached, so that a page of old jobs costs one query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from seatrial.domain.frozen import Frozen, trusted
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.reports.fact import Counts
from seatrial.domain.reports.rules import planned_share
from seatrial.domain.reports.score import ScoreLine, best_first, score_line
from seatrial.engine.recent import EndedJobs, RecentlyUsed
from seatrial.engine.reports.reporting import configuration_labels
from seatrial.engine.reports.tallied import counts_of
from seatrial.errors import NotFound
from seatrial.ports.store import JobFilter, JobNumbers, JobStore, JobTotals, Page, Tally

_OPEN_JOBS = 1000
_OPEN_SCORE_SEC = 2.0
"""Maximum age of the score of a running job, so that many viewers cost one computation."""


class ScoreLines(Frozen):
    """One score for each configuration of a job, the best first. There is no score over several."""

    items: tuple[ScoreLine, ...]

    @property
    def only(self) -> ScoreLine | None:
        """The score of a job with a single configuration."""
        return self.items[0] if len(self.items) == 1 else None


class JobLine(Frozen):
    job: Job
    counts: JobCounts
    totals: JobTotals
    scores: ScoreLines | None = None
    """Only if requested."""


class JobListing:
    """One per process."""

    def __init__(
        self, jobs: JobStore, ended: EndedJobs | None = None, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs = jobs
        self._ended = ended or EndedJobs()
        self._seconds = seconds
        self._open_scores: RecentlyUsed[tuple[float, ScoreLines]] = RecentlyUsed(_OPEN_JOBS)

    async def page(self, page: Page, chosen: JobFilter, *, with_score: bool = False) -> list[JobLine]:
        return await self.lines(await self._jobs.page(page, chosen), with_score=with_score)

    async def line(self, job: Job, *, with_score: bool = True) -> JobLine:
        return (await self.lines([job], with_score=with_score))[0]

    async def lines(self, jobs: Sequence[Job], *, with_score: bool = False) -> list[JobLine]:
        numbers = await self._all_numbers(jobs)
        jobs = [await self._as_counted(job, numbers[job.id].counts) for job in jobs]
        scores = await self._all_scores(jobs) if with_score else {}
        return [
            trusted(
                JobLine,
                {
                    "job": job,
                    "counts": numbers[job.id].counts,
                    "totals": numbers[job.id].totals,
                    "scores": scores.get(job.id),
                },
            )
            for job in jobs
        ]

    async def _as_counted(self, job: Job, counts: JobCounts) -> Job:
        """Reads a job again if it ended between reading it and counting its trials, so that both agree."""
        if job.ended_at is None and counts.total and counts.done:
            with suppress(NotFound):  # it was deleted just now
                return await self._jobs.get(job.id)
        return job

    async def _all_numbers(self, jobs: Sequence[Job]) -> dict[int, JobNumbers]:
        known = {job.id: numbers for job in jobs if (numbers := self._ended.get(job, JobNumbers)) is not None}
        unknown = [job for job in jobs if job.id not in known]
        ids = [job.id for job in unknown]
        known |= await self._jobs.numbers(ids) if ids else {}
        for job in unknown:
            if known[job.id].counts.done:
                self._ended.put(job, known[job.id])
        return known

    async def _all_scores(self, jobs: Sequence[Job]) -> dict[int, ScoreLines]:
        known = {job.id: line for job in jobs if (line := self._known_score(job)) is not None}
        unknown = [job for job in jobs if job.id not in known]
        tallies = await self._jobs.tallies([job.id for job in unknown]) if unknown else {}
        for job in unknown:  # in a thread, because an interval takes thousands of draws
            known[job.id] = await asyncio.to_thread(score_lines, job.spec, tallies[job.id])
            self._ended.put(job, known[job.id])
            if job.ended_at is None:
                self._open_scores.put(job.id, (self._seconds(), known[job.id]))
        return known

    def _known_score(self, job: Job) -> ScoreLines | None:
        if job.ended_at is not None:
            return self._ended.get(job, ScoreLines)
        worked_out = self._open_scores.get(job.id)
        if worked_out is None or self._seconds() - worked_out[0] > _OPEN_SCORE_SEC:
            return None
        return worked_out[1]


def score_lines(spec: JobSpec, tallies: Iterable[Tally]) -> ScoreLines:
    """From what the trials came to; the same numbers as in the report."""
    found: dict[int, list[Tally]] = {}
    for tally in tallies:
        found.setdefault(tally.agent_index, []).append(tally)
    lines = []
    for index, label in enumerate(configuration_labels(spec.agents)):
        counts = list(counts_by_task(found.get(index, [])).values())
        lines.append(score_line(label, counts, planned_share(spec, sum(task.planned for task in counts))))
    return ScoreLines(items=best_first(lines))


def counts_by_task(tallies: Iterable[Tally]) -> dict[str, Counts]:
    """Of one configuration, by digest of the task."""
    found: dict[str, list[Tally]] = {}
    for tally in tallies:
        found.setdefault(tally.digest, []).append(tally)
    return {digest: counts_of(of_task) for digest, of_task in found.items()}
