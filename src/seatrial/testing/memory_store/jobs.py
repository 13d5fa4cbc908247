"""Jobs in memory: created, listed, cancelled, retried, deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import fmean

from seatrial.domain import event_log
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.reports.progress import Kind, KnownDuration, RunningTrial, WorkLeft
from seatrial.domain.trial import CancelAsked, Mark, NewTrial, Released, Retried, Trial, TrialState, further_attempt
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import (
    ConfigurationTotals,
    JobFilter,
    JobNumbers,
    JobTotals,
    Once,
    Page,
    SpentTally,
    Tally,
)
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryJobs:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._creations: dict[str, tuple[str, int]] = {}
        self._versions: dict[tuple[int, str], str] = {}
        self._last_job = 0
        self._last_trial = 0

    async def create(
        self,
        spec: JobSpec,
        trials: Sequence[NewTrial],
        now: datetime,
        *,
        hold: bool = False,
        keys: str | None = None,
        once: Once | None = None,
    ) -> Job:
        if once is not None and once.key in self._creations:
            fingerprint, job_id = self._creations[once.key]
            if fingerprint != once.fingerprint:
                raise Conflict("This idempotency key was used for another request.")
            return self._records.jobs[job_id]
        self._last_job += 1
        job = Job(id=self._last_job, spec=spec, created_at=now)
        self._records.jobs[job.id] = job
        for planned in trials:
            self._create_trial(job.id, planned, hold, now)
        if keys is not None:
            self._records.sealed_keys[job.id] = keys
        if once is not None:
            self._creations[once.key] = (once.fingerprint, job.id)
        self._records.append_event(event_log.job_created(job, len(trials)), now)
        self._records.end_job_if_done(job.id, now)
        return self._records.jobs[job.id]

    async def get(self, job_id: int) -> Job:
        if job_id not in self._records.jobs:
            raise NotFound(f"There is no job {job_id}.")
        return self._records.jobs[job_id]

    async def record_version(self, job_id: int, name: str, version: str) -> str:
        if version:
            await self.get(job_id)
            self._versions.setdefault((job_id, name), version)
        return self._versions.get((job_id, name), "")

    async def page(self, page: Page, chosen: JobFilter | None = None) -> list[Job]:
        newest_first = [
            job for job in reversed(self._records.jobs.values()) if self._admits(chosen or JobFilter(), job)
        ]
        below = [job for job in newest_first if page.before is None or job.id < page.before]
        return below[page.skip : page.skip + page.limit]

    async def count(self, chosen: JobFilter) -> int:
        return sum(self._admits(chosen, job) for job in self._records.jobs.values())

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        return {job_id: self._records.count(job_id) for job_id in job_ids}

    async def numbers(self, job_ids: Sequence[int]) -> dict[int, JobNumbers]:
        return {
            job_id: JobNumbers(counts=self._records.count(job_id), totals=self._total(job_id)) for job_id in job_ids
        }

    async def tallies(self, job_ids: Sequence[int]) -> dict[int, list[Tally]]:
        found: dict[int, list[Tally]] = {}
        for job_id in job_ids:
            planned = (t for t in self._records.of_job(job_id) if not t.added)
            ways = Counter((t.task.digest, t.agent_index, t.outcome, t.cause) for t in planned)
            found[job_id] = [
                Tally(digest=digest, agent_index=index, outcome=outcome, cause=cause, trials=times)
                for (digest, index, outcome, cause), times in sorted(ways.items(), key=str)
            ]
        return found

    async def spent_tallies(self, job_ids: Sequence[int]) -> dict[int, list[SpentTally]]:
        plain = await self.tallies(job_ids)
        return {job_id: [self._with_sums(job_id, tally) for tally in found] for job_id, found in plain.items()}

    def _with_sums(self, job_id: int, tally: Tally) -> SpentTally:
        alike = [
            trial.id
            for trial in self._records.of_job(job_id)
            if not trial.added
            and (trial.task.digest, trial.agent_index) == (tally.digest, tally.agent_index)
            and (trial.outcome, trial.cause) == (tally.outcome, tally.cause)
        ]
        times = [result.seconds for each in alike if (result := self._records.last_result(each)) is not None]
        spent = [self._records.spent(each) for each in alike]
        metered = [each for each in spent if each.input_tokens is not None or each.output_tokens is not None]
        costs = [each.cost_usd for each in spent if each.cost_usd is not None]
        return SpentTally(
            **tally.model_dump(),
            timed=len(times),
            seconds=sum(times),
            metered=len(metered),
            tokens=sum((each.input_tokens or 0) + (each.output_tokens or 0) for each in metered),
            priced=len(costs),
            cost_usd=sum(costs),
        )

    async def configuration_totals(self, job_ids: Sequence[int]) -> dict[int, list[ConfigurationTotals]]:
        return {job_id: list(self._configuration_totals(job_id)) for job_id in job_ids}

    def _configuration_totals(self, job_id: int) -> Iterator[ConfigurationTotals]:
        by_agent: dict[int, list[Trial]] = {}
        for trial in self._records.of_job(job_id):
            by_agent.setdefault(trial.agent_index, []).append(trial)
        for index, trials in sorted(by_agent.items()):
            planned = [trial for trial in trials if not trial.added]
            costs = [cost for trial in planned if (cost := self._records.spent(trial.id).cost_usd) is not None]
            ended = [self._records.last_result(trial.id) for trial in planned if trial.state is TrialState.ENDED]
            yield ConfigurationTotals(
                agent_index=index,
                cost_usd=sum(costs) if costs else None,
                priced=len(costs),
                unlimited=sum(Mark.LIMITS_NOT_ENFORCED in result.marks for result in ended if result is not None),
                added=len(trials) - len(planned),
            )

    async def work_left(self, job_id: int, since: datetime) -> WorkLeft:
        trials = list(self._records.of_job(job_id))
        took: dict[Kind, list[float]] = {}
        for trial in trials:
            if trial.graded and (result := self._records.last_result(trial.id)) is not None:
                took.setdefault(_kind(trial), []).append(result.seconds)
        waiting = Counter(_kind(trial) for trial in trials if trial.state in (TrialState.HELD, TrialState.QUEUED))
        return WorkLeft(
            running=tuple(
                RunningTrial(digest=trial.task.digest, agent_index=trial.agent_index, started_at=trial.started_at)
                for trial in trials
                if trial.state is TrialState.RUNNING and trial.started_at is not None
            ),
            waiting=dict(waiting),
            durations={
                kind: KnownDuration(trials=len(seconds), mean=fmean(seconds), longest=max(seconds))
                for kind, seconds in took.items()
            },
            recently_ended=sum(trial.ended_at is not None and trial.ended_at > since for trial in trials),
            first_started_at=min((trial.started_at for trial in trials if trial.started_at), default=None),
        )

    async def save_sealed_keys(self, job_id: int, keys: str) -> None:
        if (await self.get(job_id)).ended_at is not None:
            raise Conflict(f"Job {job_id} has ended.")
        self._records.sealed_keys[job_id] = keys

    async def sealed_keys(self, job_id: int) -> str | None:
        return self._records.sealed_keys.get(job_id)

    async def cancel(self, job_id: int, now: datetime) -> int:
        job = await self.get(job_id)
        asked = [trial for trial in self._records.of_job(job_id) if _can_be_asked(trial)]
        if not asked:
            return 0
        self._records.jobs[job_id] = job.model_copy(update={"cancelled_at": job.cancelled_at or now})
        self._records.append_event(event_log.job_cancelled(job_id, len(asked)), now)
        self._ask_to_stop(asked, now)
        self._records.end_job_if_done(job_id, now)
        return len(asked)

    async def cancel_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        trials = [self._records.trial(trial_id) for trial_id in sorted(set(trial_ids))]
        asked = [trial for trial in trials if _can_be_asked(trial)]
        self._ask_to_stop(asked, now)
        for job_id in sorted({trial.job_id for trial in trials}):
            self._records.end_job_if_done(job_id, now)
        return len(asked)

    async def release_trials(self, trial_ids: Sequence[int], now: datetime, *, limit_sec: float | None = None) -> int:
        trials = [self._records.trial(trial_id) for trial_id in sorted(set(trial_ids))]
        held = [trial for trial in trials if trial.state is TrialState.HELD]
        for trial in held:
            self._records.append_event(
                event_log.trial_released(self._records.change(trial, Released(limit_sec=limit_sec), now)), now
            )
        return len(held)

    async def drop_trials(self, job_id: int, trial_ids: Sequence[int], now: datetime) -> int:
        await self.get(job_id)
        wanted, records = set(trial_ids), self._records
        unclaimed = [trial for trial in records.of_job(job_id) if trial.id in wanted and _is_unclaimed(trial)]
        for trial in unclaimed:
            del records.trials[trial.id], records.tries[trial.id]
        if unclaimed:
            records.append_event(event_log.job_trimmed(job_id, len(unclaimed)), now)
            records.end_job_if_done(job_id, now)
        return len(unclaimed)

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> int:
        trials = [self._records.trial(trial_id) for trial_id in sorted(set(trial_ids))]
        ended = [trial for trial in trials if trial.state is TrialState.ENDED and not trial.graded]
        for trial in ended:
            self._records.append_event(
                event_log.trial_retried(self._records.change(trial, Retried(hold=hold), now)), now
            )
            self._reopen(trial.job_id)
        return len(ended)

    async def add_attempts(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> list[int]:
        trials = [self._records.trial(trial_id) for trial_id in sorted(set(trial_ids))]
        added = []
        for trial in trials:
            if trial.graded:
                last = max(
                    other.attempt for other in self._records.of_job(trial.job_id) if _kind(other) == _kind(trial)
                )
                made = self._create_trial(trial.job_id, further_attempt(trial, last + 1), hold, now)
                self._records.append_event(event_log.trial_added(made), now)
                self._reopen(trial.job_id)
                added.append(made.id)
        return added

    async def delete(self, job_id: int) -> None:
        if (await self.get(job_id)).ended_at is None:
            raise Conflict(f"Job {job_id} has trials left to do.")
        for trial in list(self._records.of_job(job_id)):
            del self._records.trials[trial.id], self._records.tries[trial.id]
        self._records.forget_triage(job_id)
        self._records.events = [event for event in self._records.events if event.job_id != job_id]
        del self._records.jobs[job_id]
        self._versions = {key: version for key, version in self._versions.items() if key[0] != job_id}

    def _create_trial(self, job_id: int, planned: NewTrial, hold: bool, now: datetime) -> Trial:
        self._last_trial += 1
        state = TrialState.HELD if hold else TrialState.QUEUED
        trial = Trial(id=self._last_trial, job_id=job_id, created_at=now, state=state, **dict(planned))
        self._records.trials[trial.id] = trial
        self._records.tries[trial.id] = []
        return trial

    def _reopen(self, job_id: int) -> None:
        self._records.jobs[job_id] = self._records.jobs[job_id].model_copy(
            update={"cancelled_at": None, "ended_at": None}
        )

    def _ask_to_stop(self, trials: Sequence[Trial], now: datetime) -> None:
        """A queued trial ends now; a running one is asked to stop."""
        for trial in trials:
            after = self._records.change(trial, CancelAsked(), now)
            if after.state is TrialState.ENDED:
                self._records.append_event(event_log.try_closed(after, None), now)

    def _admits(self, chosen: JobFilter, job: Job) -> bool:
        trials = list(self._records.of_job(job.id))
        counts = self._records.count(job.id)
        moves = counts.moving > 0
        waits = counts.held + counts.added.held > 0 and not moves
        return (
            chosen.status in (None, counts.status)
            and (chosen.waits is None or (waits if chosen.waits else moves))
            and chosen.settling in (None, job.ended_at is None and job.spec.until_settled is not None)
            and chosen.origin in (None, job.spec.origin)
            and (chosen.name is None or chosen.name.lower() in (job.renamed or job.spec.name).lower())
            and chosen.pinned in (None, job.pinned_at is not None)
            and chosen.dataset in (None, job.spec.dataset)
            and (chosen.task is None or any(trial.task.name == chosen.task for trial in trials))
            and (chosen.agent is None or any(trial.agent == chosen.agent for trial in trials))
            and (chosen.model is None or any(trial.model == chosen.model for trial in trials))
        )

    def _total(self, job_id: int) -> JobTotals:
        trials = list(self._records.of_job(job_id))
        spent = [self._records.spent(trial.id) for trial in trials]
        costs = [each.cost_usd for each in spent if each.cost_usd is not None]
        return JobTotals(
            seconds=sum(each.seconds for each in spent),
            input_tokens=sum(each.input_tokens or 0 for each in spent),
            output_tokens=sum(each.output_tokens or 0 for each in spent),
            cost_usd=sum(costs) if costs else None,
            started_at=min((trial.started_at for trial in trials if trial.started_at), default=None),
        )


def _kind(trial: Trial) -> Kind:
    return trial.task.digest, trial.agent_index


def _is_unclaimed(trial: Trial) -> bool:
    return trial.state in (TrialState.HELD, TrialState.QUEUED) and trial.try_number == 0 and not trial.added


def _can_be_asked(trial: Trial) -> bool:
    return trial.state is not TrialState.ENDED and not trial.cancel_requested
