"""Numbers of the installation and its workers, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import fmean

from seatrial.domain.job import JobCounts
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, TrialState
from seatrial.ports.store import Backlog, Experience, Heartbeat, Overview, WorkerRow
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryWorkers:
    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, WorkerRow] = {}

    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None:
        self._workers[heartbeat.worker] = WorkerRow(seen_at=now, **heartbeat.model_dump())

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        rows = sorted(self._workers.values(), key=lambda row: row.worker)
        return [row for row in rows if seen_since is None or row.seen_at >= seen_since]

    async def forget_worker(self, worker: str) -> None:
        self._workers.pop(worker, None)


class MemoryOverview(MemoryRecords):
    async def overview(self, origin: str | None = None) -> Overview:
        chosen = {job_id for job_id, job in self._jobs.items() if origin in (None, job.spec.origin)}
        trials = [trial for trial in self._trials.values() if trial.job_id in chosen]
        tally = Counter(str(trial.outcome or trial.state) for trial in trials)
        errors = Counter(trial.cause for trial in trials if trial.outcome is Outcome.ERROR and trial.cause is not None)
        jobs = Counter(self._count(job_id).status for job_id in chosen)
        return Overview(jobs=dict(jobs), trials=JobCounts(**tally), errors=dict(errors))

    async def backlog(self, now: datetime) -> Backlog:
        queued = [trial for trial in self._trials.values() if trial.state is TrialState.QUEUED]
        ended = [trial.ended_at for trial in self._trials.values() if trial.ended_at is not None]
        return Backlog(
            queued=len(queued),
            delayed=sum(trial.not_before is not None and trial.not_before > now for trial in queued),
            running=sum(trial.state is TrialState.RUNNING for trial in self._trials.values()),
            oldest_queued_at=min((trial.created_at for trial in queued), default=None),
            ended_last_minute=sum(moment > now - timedelta(minutes=1) for moment in ended),
        )

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        groups: dict[tuple[str, str, str | None], list[Result]] = {}
        for trial in self._trials.values():
            result = self._last_result(trial.id)
            if trial.task.name in tasks and result and trial.outcome in (Outcome.PASSED, Outcome.FAILED):
                groups.setdefault((trial.task.name, trial.agent, trial.model), []).append(result)
        return [_experience(key, results) for key, results in groups.items()]


def _experience(key: tuple[str, str, str | None], results: list[Result]) -> Experience:
    costs = [result.usage.cost_usd for result in results if result.usage.cost_usd is not None]
    return Experience(
        task=key[0],
        agent=key[1],
        model=key[2],
        trials=len(results),
        seconds=fmean(result.seconds for result in results),
        cost_usd=fmean(costs) if costs else None,
    )
