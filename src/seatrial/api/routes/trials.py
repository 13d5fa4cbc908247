"""``/api/v1/trials`` and ``/api/v1/jobs/{id}/trials``: each trial and its result."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from seatrial.api.context import GivenKeys, ServiceDep
from seatrial.api.routes.pages import JobId, RequestedPage, TrialId, cut, requested_page
from seatrial.api.routes.router import errors, native_router, trial_page
from seatrial.domain.numbers import LARGEST_COUNT
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.engine.trials.trial_files import ended_try
from seatrial.errors import Conflict
from seatrial.ports.store import TrialFilter, TrialRow
from seatrial.shapes.answers import Plain
from seatrial.shapes.budgets import CapState
from seatrial.shapes.jobs import Added, Cancelled, Queued
from seatrial.shapes.trials import ResultPage, TestList, TrialDetail, TrialPage, TrialResult

router = native_router("", "trials")
TryNumber = Annotated[
    int | None, Query(ge=1, le=LARGEST_COUNT, description="Number of the try. Default: the last one.")
]


@dataclass(frozen=True)
class TrialChoice:
    """Several states, outcomes or causes may be given; a trial matches if it has one of each."""

    state: Annotated[list[TrialState] | None, Query()] = None
    outcome: Annotated[list[Outcome] | None, Query()] = None
    cause: Annotated[list[Cause] | None, Query()] = None
    task: Annotated[Plain | None, Query(description="A task's name.")] = None
    agent: Plain | None = None
    model: Plain | None = None
    tag: Plain | None = None
    label: Annotated[Plain | None, Query(description="A label's name, or `name=value`.")] = None
    reviewed: bool | None = None
    noted: Annotated[bool | None, Query(description="Whether somebody wrote a note.")] = None

    def filter(self, job_id: int | None = None) -> TrialFilter:
        return TrialFilter(
            job_id=job_id,
            states=tuple(dict.fromkeys(self.state or ())),
            outcomes=tuple(dict.fromkeys(self.outcome or ())),
            causes=tuple(dict.fromkeys(self.cause or ())),
            task=self.task,
            agent=self.agent,
            model=self.model,
            tag=self.tag,
            label=self.label,
            reviewed=self.reviewed,
            noted=self.noted,
        )


Chosen = Annotated[TrialChoice, Depends()]
Wanted = Annotated[RequestedPage, Depends(requested_page)]


@router.get("/trials", responses=errors())
async def list_trials(service: ServiceDep, page: Wanted, which: Chosen) -> TrialPage:
    """Trials of all jobs, newest first."""
    return trial_page(await service.installation.store.trials.summaries(which.filter(), page.by_id()), page.limit)


@router.get("/jobs/{job_id}/trials", responses=errors(404))
async def list_job_trials(service: ServiceDep, job_id: JobId, page: Wanted, which: Chosen) -> TrialPage:
    """Trials of one job, newest first."""
    store = service.installation.store
    found = await store.trials.summaries(which.filter(job_id), page.by_id())
    if not found:
        await store.jobs.get(job_id)  # 404 for an unknown job
    return trial_page(found, page.limit)


@router.get("/jobs/{job_id}/results", responses=errors(404))
async def list_job_results(service: ServiceDep, job_id: JobId, page: Wanted) -> ResultPage:
    """Trials of one job with their full results, in planned order."""
    store = service.installation.store
    await store.jobs.get(job_id)  # 404 for an unknown job
    found: list[TrialRow] = []
    async with aclosing(store.trials.each(TrialFilter(job_id=job_id, after=page.number() or 0))) as rows:
        async for row in rows:
            found.append(row)
            if len(found) == page.one_more:
                break
    shown, last = cut(found, page.limit)
    return ResultPage(items=[TrialResult.of(row) for row in shown], next=str(last.trial.id) if last else None)


@router.get("/trials/{trial_id}", responses=errors(404))
async def get_trial(service: ServiceDep, trial_id: TrialId) -> TrialDetail:
    """One trial: its state, its last result in full, and all tries."""
    installation = service.installation
    history = await installation.store.trials.history(trial_id)
    if history.trial.state is TrialState.ENDED:
        return TrialDetail.of(history)
    job = await installation.store.jobs.get(history.trial.job_id)
    found = await installation.cap_usages.of_trial(job.id, trial_id, job.spec, installation.clock())
    return TrialDetail.of(history, [CapState.of_usage(usage) for usage in found])


@router.post("/trials/{trial_id}/cancel", responses=errors(404))
async def cancel_trial(service: ServiceDep, trial_id: TrialId) -> Cancelled:
    """Stops one trial. The other trials of its job continue."""
    return Cancelled(cancelled=await service.installation.jobs.cancel_trial(trial_id))


@router.post("/trials/{trial_id}/retry", responses=errors(400, 404, 409))
async def retry_trial(service: ServiceDep, trial_id: TrialId, keys: GivenKeys) -> Queued:
    """Runs a trial again that ended in an error or was cancelled. Earlier tries are kept. 409 for a graded trial: its
    result is final."""
    return Queued(queued=await service.installation.jobs.retry_trial(trial_id, keys))


@router.post("/trials/{trial_id}/attempts", status_code=201, responses=errors(400, 404, 409))
async def add_attempt(service: ServiceDep, trial_id: TrialId, keys: GivenKeys) -> Added:
    """Runs a graded trial again as a further attempt outside of the plan, which is not part of the score."""
    jobs = service.installation.jobs
    trial = (await service.installation.store.trials.get(trial_id)).trial
    if not trial.graded:
        raise Conflict(
            f"Trial {trial_id} has no grade.", fix=f"Retry it when it has ended: POST /trials/{trial_id}/retry"
        )
    return Added(trials=await jobs.add_attempts(trial.job_id, trials=[trial_id], keys=keys))


@router.get("/trials/{trial_id}/tests", responses=errors(404))
async def list_tests(service: ServiceDep, trial_id: TrialId, attempt: TryNumber = None) -> TestList:
    """Results of the verifier's tests."""
    found = await ended_try(service.installation.store.trials, trial_id, attempt)
    return TestList(attempt=found.number, items=list(found.result.tests) if found.result else [])
