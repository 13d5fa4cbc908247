"""Trials in memory: claimed, renewed, ended and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta

from seatrial.domain import event_log
from seatrial.domain.fleet.isolation import Suspects, divide
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import EVERYTHING, Offer
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.reports.failures import FailedTest, FailedTrial
from seatrial.domain.result import Result, Spent, TestStatus, Try
from seatrial.domain.suffered import Suffered
from seatrial.domain.triage import MarkKind
from seatrial.domain.trial import (
    Ended,
    GivenBack,
    LeaseRenewed,
    Outcome,
    Trial,
    TrialEvent,
    TrialState,
    TryAgain,
    WorkerLost,
)
from seatrial.ports.store import (
    FailedRow,
    Loss,
    Page,
    PhaseEntry,
    RenewalReport,
    TrialFilter,
    TrialHistory,
    TrialNumbers,
    TrialRow,
    TrialSummary,
)
from seatrial.testing.memory_store.claims import MemoryClaims
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryTrials:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._claims = MemoryClaims(records)

    async def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None = None,
        seal: str | None = None,
        group: str | None = None,
        offer: Offer = EVERYTHING,
    ) -> list[Trial]:
        return self._claims.claim(worker, lease, limit, now, job_id, seal, group, offer)

    async def suspects(self, now: datetime, job_id: int | None = None, seal: str | None = None) -> list[Suspects]:
        return self._claims.suspects(now, job_id, seal)

    async def queued_needs(self, job_id: int) -> list[Needs]:
        queued = (trial for trial in self._records.of_job(job_id) if trial.state is TrialState.QUEUED)
        return [Needs.parse(text) for text in sorted({trial.needs.text for trial in queued})]

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        kept = [trial for trial in self._current(held) if trial.worker == worker]
        for trial in kept:
            self._records.change(trial, LeaseRenewed(try_number=trial.try_number, lease=lease), now)
        lost = frozenset(held) - {trial.id for trial in kept}
        return RenewalReport(lost=lost, cancel=frozenset(trial.id for trial in kept if trial.cancel_requested))

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        running = (trial for trial in self._records.trials.values() if trial.state is TrialState.RUNNING)
        return frozenset(trial.id for trial in running if trial.worker == worker and trial.cancel_requested)

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        for entry in entries:
            for trial in self._current({entry.trial_id: entry.try_number}):
                self._records.trials[trial.id] = trial.model_copy(update={"phase": entry.phase})
                fact = event_log.phase_entered(entry.job_id, trial.id, entry.try_number, entry.phase, entry.step)
                self._records.append_event(fact, entry.at)

    async def finish(self, trial_id: int, try_number: int, result: Result, now: datetime) -> Trial:
        event = Ended(try_number=try_number, outcome=result.outcome, cause=result.cause)
        return self._close(trial_id, event, result, now)

    async def try_again(self, trial_id: int, try_number: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        return self._close(trial_id, TryAgain(try_number=try_number, delay=delay), result, now)

    async def lose_worker(self, worker: str, losses: Sequence[Loss], death: Death, now: datetime) -> list[Trial]:
        current = self._current({loss.trial_id: loss.try_number for loss in losses})
        held = {trial.id: trial for trial in current if trial.worker == worker}
        groups = divide(list(held.values()))
        mine = [loss for loss in losses if loss.trial_id in held]
        shared = {loss.trial_id: len(mine) > 1 or self._was_shared(loss.trial_id, loss.try_number) for loss in mine}
        return [
            self._close(
                loss.trial_id,
                WorkerLost(
                    try_number=loss.try_number,
                    shared=shared[loss.trial_id],
                    last=loss.last,
                    death=death,
                    group=groups[loss.trial_id],
                ),
                loss.result,
                now,
            )
            for loss in mine
        ]

    async def give_back(self, trial_id: int, try_number: int, now: datetime) -> Trial:
        return self._close(trial_id, GivenBack(try_number=try_number), None, now)

    async def any_due(self, now: datetime) -> bool:
        queued = (trial for trial in self._records.trials.values() if trial.state is TrialState.QUEUED)
        return any(trial.not_before is None or trial.not_before <= now for trial in queued)

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        late = [
            (trial.lease_until, trial.id)
            for trial in self._records.trials.values()
            if trial.lease_until is not None and trial.lease_until < now
        ]
        return [self._records.trials[trial_id] for _, trial_id in sorted(late)[:limit]]

    async def is_due_since(self, moment: datetime) -> bool:
        return any(
            trial.state is TrialState.QUEUED and max(trial.created_at, trial.not_before or trial.created_at) <= moment
            for trial in self._records.trials.values()
        )

    async def get(self, trial_id: int) -> TrialRow:
        return TrialRow(trial=self._records.trial(trial_id), result=self._records.last_result(trial_id))

    async def each(self, chosen: TrialFilter) -> AsyncGenerator[TrialRow]:
        for trial in self._chosen(chosen):
            yield TrialRow(trial=trial, result=self._records.last_result(trial.id))

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        newest_first = reversed(self._chosen(chosen))
        below = [trial for trial in newest_first if page.before is None or trial.id < page.before]
        rows = below[page.skip : page.skip + page.limit]
        return [_summary(trial, self._records.last_result(trial.id), self._records.spent(trial.id)) for trial in rows]

    async def numbers(self, job_id: int) -> list[TrialNumbers]:
        found = []
        for trial in self._records.of_job(job_id):
            result = self._records.last_result(trial.id)
            found.append(
                TrialNumbers(
                    trial_id=trial.id,
                    task=trial.task,
                    agent_index=trial.agent_index,
                    attempt=trial.attempt,
                    added=trial.added,
                    tries=trial.try_number,
                    outcome=trial.outcome,
                    cause=trial.cause,
                    reward=result.reward if result else None,
                    marks=result.marks if result else (),
                    seconds=result.seconds if result else None,
                    spent=self._records.spent(trial.id),
                    suffered=result.suffered if result else Suffered(),
                )
            )
        return found

    async def failed(self, job_id: int) -> list[FailedRow]:
        return [
            _failed(trial, self._records.last_result(trial.id))
            for trial in self._records.of_job(job_id)
            if trial.outcome in (Outcome.FAILED, Outcome.ERROR) and not trial.added
        ]

    async def history(self, trial_id: int) -> TrialHistory:
        trial = self._records.trial(trial_id)
        agent = self._records.jobs[trial.job_id].spec.agents[trial.agent_index]
        return TrialHistory(trial=trial, agent=agent, tries=tuple(self._records.tries[trial_id]))

    async def running_by_worker(self) -> dict[str, int]:
        running = (trial for trial in self._records.trials.values() if trial.state is TrialState.RUNNING)
        return dict(Counter(trial.worker for trial in running if trial.worker))

    async def tries(self, trial_id: int) -> list[Try]:
        self._records.trial(trial_id)
        return list(self._records.tries[trial_id])

    def _current(self, held: dict[int, int]) -> list[Trial]:
        found = (self._records.trials.get(trial_id) for trial_id in held)
        return [t for t in found if t and t.state is TrialState.RUNNING and t.try_number == held[t.id]]

    def _was_shared(self, trial_id: int, try_number: int) -> bool:
        mine = next((one for one in self._records.tries.get(trial_id, []) if one.number == try_number), None)
        others = (one for number, tries in self._records.tries.items() if number != trial_id for one in tries)
        return mine is not None and any(
            one.worker == mine.worker and (one.ended_at is None or one.ended_at > mine.started_at) for one in others
        )

    def _close(self, trial_id: int, event: TrialEvent, result: Result | None, now: datetime) -> Trial:
        after = self._records.change(self._records.trial(trial_id), event, now)
        a_try = self._records.tries[trial_id][-1]
        self._records.tries[trial_id][-1] = a_try.model_copy(update={"ended_at": now, "result": result})
        self._records.append_event(event_log.try_closed(after, result), now)
        if after.state is TrialState.ENDED:
            self._records.end_job_if_done(after.job_id, now)
        return after

    def _chosen(self, chosen: TrialFilter) -> list[Trial]:
        return [
            trial
            for trial in self._records.trials.values()
            if chosen.job_id in (None, trial.job_id)
            and trial.id > chosen.after
            and chosen.task in (None, trial.task.name)
            and chosen.agent in (None, trial.agent)
            and chosen.model in (None, trial.model)
            and (not chosen.causes or trial.cause in chosen.causes)
            and (not chosen.states or trial.state in chosen.states)
            and (not chosen.outcomes or trial.outcome in chosen.outcomes)
            and self._triaged(chosen, trial.id)
        ]

    def _triaged(self, chosen: TrialFilter, trial_id: int) -> bool:
        marks = {
            (mark.kind, mark.name): mark.value for mark in self._records.marks.values() if mark.trial_id == trial_id
        }
        name, given, value = (chosen.label or "").partition("=")
        label = marks.get((MarkKind.LABEL, name))
        noted = any(note.trial_id == trial_id for note in self._records.notes.values())
        return (
            (chosen.tag is None or (MarkKind.TAG, chosen.tag) in marks)
            and (chosen.label is None or (label is not None and (not given or label == value)))
            and chosen.reviewed in (None, (MarkKind.REVIEWED, "") in marks)
            and chosen.noted in (None, noted)
        )


def _summary(trial: Trial, result: Result | None, spent: Spent) -> TrialSummary:
    if result is None:
        return TrialSummary(trial=trial)
    return TrialSummary(
        trial=trial,
        reward=result.reward,
        marks=result.marks,
        seconds=result.seconds,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost_usd=result.usage.cost_usd,
        spent=spent,
        suffered=result.suffered,
    )


def _failed(trial: Trial, result: Result | None) -> FailedRow:
    assert trial.outcome is not None
    found = result or Result(outcome=trial.outcome)
    failed = FailedTrial(
        trial_id=trial.id,
        task=trial.task.name,
        configuration="",
        attempt=trial.attempt,
        outcome=trial.outcome,
        cause=trial.cause,
        marks=found.marks,
        message=found.message,
        tests=tuple(
            FailedTest(test.name, test.message)
            for test in found.tests
            if test.status in (TestStatus.FAILED, TestStatus.ERROR)
        ),
        last_command=found.last_command,
    )
    return FailedRow(failed, trial.task.digest, trial.agent_index)
