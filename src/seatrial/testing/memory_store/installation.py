"""Tokens, provider keys, workers and totals in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import fmean

from seatrial.domain.fleet.work_units import OpenWork
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.job import JobCounts
from seatrial.domain.result import Result
from seatrial.domain.token import NewToken, Token
from seatrial.domain.trial import Mark, Outcome, TrialState
from seatrial.errors import NotFound
from seatrial.ports.store import Backlog, Experience, Heartbeat, Overview, ProviderKey, WorkerRow
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryTokens:
    def __init__(self) -> None:
        self._tokens: dict[int, Token] = {}

    async def save(self, token: NewToken, now: datetime) -> Token:
        kept = Token(id=len(self._tokens) + 1, created_at=now, **token.model_dump())
        self._tokens[kept.id] = kept
        return kept

    async def get(self, fingerprint: str) -> Token | None:
        return next((token for token in self._tokens.values() if token.fingerprint == fingerprint), None)

    async def all(self) -> list[Token]:
        return list(reversed(self._tokens.values()))

    async def revoke(self, token_id: int, now: datetime) -> Token:
        if token_id not in self._tokens:
            raise NotFound(f"There is no token {token_id}.")
        known = self._tokens[token_id]
        self._tokens[token_id] = known.model_copy(update={"revoked_at": known.revoked_at or now})
        return self._tokens[token_id]

    async def note_use(self, token_id: int, now: datetime) -> None:
        if token_id in self._tokens:
            self._tokens[token_id] = self._tokens[token_id].model_copy(update={"used_at": now})


class MemoryProviderKeys:
    def __init__(self) -> None:
        self._keys: dict[str, ProviderKey] = {}

    async def save(self, name: str, sealed: str, now: datetime) -> None:
        self._keys[name] = ProviderKey(name=name, sealed=sealed, set_at=now)

    async def all(self) -> list[ProviderKey]:
        return sorted(self._keys.values(), key=lambda key: key.name)

    async def delete(self, name: str) -> None:
        if self._keys.pop(name, None) is None:
            raise NotFound(f"There is no provider key {name}.")


class MemoryWorkers:
    def __init__(self, records: MemoryRecords | None = None) -> None:
        self.rows: dict[str, WorkerRow] = {}
        self._records = records or MemoryRecords()
        self._leaving: set[str] = set()

    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None:
        self.rows[heartbeat.worker] = WorkerRow(seen_at=now, **heartbeat.model_dump())

    async def all(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        rows = sorted(self.rows.values(), key=lambda row: row.worker)
        return [row for row in rows if seen_since is None or row.seen_at >= seen_since]

    async def died(self, worker: str, death: Death) -> None:
        if worker in self.rows:
            self.rows[worker] = self.rows[worker].model_copy(update={"death": death})

    async def forget(self, worker: str) -> None:
        self.rows.pop(worker, None)

    async def leave_if_spare(self, worker: str, minimum: int, seen_since: datetime, now: datetime) -> bool:
        staying = [row for row in self.rows.values() if row.worker not in self._leaving and row.seen_at >= seen_since]
        others = sum(row.works and row.worker != worker for row in staying)
        running = (trial for trial in self._records.trials.values() if trial.state is TrialState.RUNNING)
        if others < minimum or worker not in self.rows or any(trial.worker == worker for trial in running):
            return False
        is_new = worker not in self._leaving
        self._leaving.add(worker)
        return is_new


class MemoryDuties:
    def __init__(self) -> None:
        self._leases: dict[str, tuple[str, datetime]] = {}

    async def take(self, duty: str, holder: str, lease: timedelta, now: datetime) -> bool:
        known, until = self._leases.get(duty, (holder, now))
        if known != holder and until > now:
            return False
        self._leases[duty] = holder, now + lease
        return True


class MemoryTotals:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records

    async def overview(self, origin: str | None = None) -> Overview:
        chosen = {job_id for job_id, job in self._records.jobs.items() if origin in (None, job.spec.origin)}
        trials = [trial for trial in self._records.trials.values() if trial.job_id in chosen]
        tally = Counter(str(trial.outcome or trial.state) for trial in trials)
        errors = Counter(trial.cause for trial in trials if trial.outcome is Outcome.ERROR and trial.cause is not None)
        jobs = Counter(self._records.count(job_id).status for job_id in chosen)
        return Overview(jobs=dict(jobs), trials=JobCounts(**tally), errors=dict(errors))

    async def backlog(self, now: datetime) -> Backlog:
        queued = [trial for trial in self._records.trials.values() if trial.state is TrialState.QUEUED]
        ended = [trial.ended_at for trial in self._records.trials.values() if trial.ended_at is not None]
        return Backlog(
            queued=len(queued),
            delayed=sum(trial.not_before is not None and trial.not_before > now for trial in queued),
            running=sum(trial.state is TrialState.RUNNING for trial in self._records.trials.values()),
            oldest_queued_at=min((trial.created_at for trial in queued), default=None),
            ended_last_minute=sum(moment > now - timedelta(minutes=1) for moment in ended),
        )

    async def open_work(self) -> list[OpenWork]:
        states = (TrialState.QUEUED, TrialState.RUNNING)
        trials = (trial for trial in self._records.trials.values() if trial.state in states)
        counts = Counter((trial.job_id, trial.task.digest) for trial in trials)
        limits = {job_id: job.spec.concurrency for job_id, job in self._records.jobs.items()}
        return [
            OpenWork(job_id=job_id, task_digest=digest, trials=count, concurrency=limits[job_id])
            for (job_id, digest), count in counts.items()
        ]

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        groups: dict[tuple[str, str, str | None], list[Result]] = {}
        for trial in self._records.trials.values():
            result = self._records.last_result(trial.id)
            graded = trial.outcome in (Outcome.PASSED, Outcome.FAILED)
            if trial.task.name in tasks and result and graded and Mark.REPLAYED not in result.marks:
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
