"""Reading trials in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator

from seatrial.domain.result import Result, Spent, Try
from seatrial.domain.trial import Trial, TrialState
from seatrial.ports.store import Page, TrialFilter, TrialHistory, TrialNumbers, TrialRow, TrialSummary
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryTrials(MemoryRecords):
    async def trial(self, trial_id: int) -> TrialRow:
        return TrialRow(trial=self._trial(trial_id), result=self._last_result(trial_id))

    async def trials(self, chosen: TrialFilter) -> AsyncGenerator[TrialRow]:
        for trial in self._chosen(chosen):
            yield TrialRow(trial=trial, result=self._last_result(trial.id))

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        newest_first = reversed(self._chosen(chosen))
        below = [trial for trial in newest_first if page.before is None or trial.id < page.before]
        rows = below[page.skip : page.skip + page.limit]
        return [_summary(trial, self._last_result(trial.id), self._spent(trial.id)) for trial in rows]

    async def trial_numbers(self, job_id: int) -> list[TrialNumbers]:
        found = []
        for trial in self._of_job(job_id):
            result = self._last_result(trial.id)
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
                    spent=self._spent(trial.id),
                )
            )
        return found

    async def history(self, trial_id: int) -> TrialHistory:
        trial = self._trial(trial_id)
        agent = self._jobs[trial.job_id].spec.agents[trial.agent_index]
        return TrialHistory(trial=trial, agent=agent, tries=tuple(self._tries[trial_id]))

    async def running_by_worker(self) -> dict[str, int]:
        running = (trial for trial in self._trials.values() if trial.state is TrialState.RUNNING)
        return dict(Counter(trial.worker for trial in running if trial.worker))

    async def tries(self, trial_id: int) -> list[Try]:
        self._trial(trial_id)
        return list(self._tries[trial_id])

    def _chosen(self, chosen: TrialFilter) -> list[Trial]:
        return [
            trial
            for trial in self._trials.values()
            if chosen.job_id in (None, trial.job_id)
            and trial.id > chosen.after
            and chosen.task in (None, trial.task.name)
            and chosen.agent in (None, trial.agent)
            and chosen.model in (None, trial.model)
            and (not chosen.causes or trial.cause in chosen.causes)
            and (not chosen.states or trial.state in chosen.states)
            and (not chosen.outcomes or trial.outcome in chosen.outcomes)
        ]


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
    )
