"""``/api/v1/workers``, ``/queue``, ``/limits``, ``/budget`` and ``/stats``: workers, queued trials and totals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Annotated

from fastapi import Depends

from seatrial.api.context import Service, ServiceDep
from seatrial.api.routes.pages import RequestedPage, cut, requested_page
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.model_calls.budget import Scope
from seatrial.domain.sandbox_choice import chosen_sandbox
from seatrial.domain.trial import Trial, TrialState
from seatrial.errors import NotFound
from seatrial.ports.store import Store, TrialFilter
from seatrial.shapes.budgets import DayBudget, Spent
from seatrial.shapes.operations import (
    FleetState,
    Limits,
    QueueState,
    RunningPage,
    RunningTrial,
    Stats,
    WorkerItem,
    WorkerList,
)
from seatrial.shapes.trials import TrialCounts

router = native_router("", "operations")
_UNTOLD = {"agents", "seal", "machine", "supervisor", "cgroup", "memory_kills", "abilities", "packing"}


@router.get("/workers", responses=errors())
async def list_workers(service: ServiceDep) -> WorkerList:
    """Known workers and their load."""
    return WorkerList(items=await _workers(service))


@router.get("/queue", responses=errors())
async def get_queue(service: ServiceDep) -> QueueState:
    """Queued trials, running trials, and free capacity."""
    installation = service.installation
    backlog = await installation.store.totals.backlog(installation.clock())
    workers = await _workers(service)
    taking = [worker for worker in workers if worker.alive and not worker.draining]
    return QueueState(
        queued=backlog.queued,
        delayed=backlog.delayed,
        running=backlog.running,
        capacity=sum(worker.capacity for worker in taking),
        backlog_per_worker=backlog.queued / len(taking) if taking else None,
        oldest_queued_at=backlog.oldest_queued_at,
        ended_last_minute=backlog.ended_last_minute,
        workers=workers,
    )


@router.get("/fleet", responses=errors())
async def get_fleet(service: ServiceDep) -> FleetState:
    """What autoscalers follow: open work in machine-sized units, and the machines for it. Counted every few seconds."""
    return FleetState.of(await service.fleet.look())


@router.get("/queue/running", responses=errors())
async def list_running_trials(
    service: ServiceDep, page: Annotated[RequestedPage, Depends(requested_page)]
) -> RunningPage:
    """Running trials with their worker and sandbox, newest first."""
    store = service.installation.store
    found = await store.trials.summaries(TrialFilter(states=(TrialState.RUNNING,)), page.by_id())
    shown, last = cut(found, page.limit)
    places = await _sandboxes(store, [summary.trial for summary in shown])
    items = [RunningTrial.of(summary, sandbox=place) for summary, place in zip(shown, places, strict=True)]
    return RunningPage(items=items, next=str(last.trial.id) if last else None)


@router.get("/limits", responses=errors())
async def get_limits(service: ServiceDep) -> Limits:
    """Limits of trials, uploads and waiting callers. The operator sets them where the service runs."""
    settings = service.installation.settings
    return Limits(**{name: getattr(settings, name) for name in Limits.model_fields})


@router.get("/budget", responses=errors())
async def get_budget(service: ServiceDep) -> DayBudget:
    """What all jobs together have spent on models today, and the operator's cap for a day."""
    installation = service.installation
    now = installation.clock()
    scope = Scope.of_day(now)
    spending = Spent.of((await installation.store.budgets.spending([scope]))[scope.name])
    return DayBudget(day=now.astimezone(UTC).date(), cap=installation.settings.day_cap, spending=spending)


@router.get("/stats", responses=errors())
async def get_stats(service: ServiceDep) -> Stats:
    """Jobs by status, trials by state and outcome, errors by cause."""
    found = await service.installation.store.totals.overview()
    return Stats(jobs=found.jobs, trials=TrialCounts.of(found.trials), errors=found.errors)


async def _workers(service: Service) -> list[WorkerItem]:
    installation = service.installation
    held = await installation.store.trials.running_by_worker()
    alive_since = installation.clock() - timedelta(seconds=installation.settings.lease_sec)
    return [
        WorkerItem(
            **row.model_dump(exclude=_UNTOLD),
            memory_mb=row.packing.size.memory_mb if row.packing else None,
            cpus=row.packing.size.cpus if row.packing else None,
            lacks=list(row.abilities.lacks),
            running=held.get(row.worker, 0),
            alive=row.seen_at >= alive_since,
        )
        for row in await installation.store.workers.all()
    ]


async def _sandboxes(store: Store, running: Sequence[Trial]) -> list[str | None]:
    """The name of each sandbox; ``None`` if the worker has not reported yet which sandboxes work there."""
    if not running:
        return []
    working = {row.worker: row.sandboxes for row in await store.workers.all()}
    digests = list(dict.fromkeys(trial.task.digest for trial in running))
    try:
        wanted = {number: (await store.jobs.get(number)).spec.sandbox for number in {trial.job_id for trial in running}}
        tasks = dict(zip(digests, await store.tasks.get_many(digests), strict=True))
    except NotFound:  # ended and deleted since they were listed
        return [None] * len(running)
    return [
        chosen_sandbox(wanted[trial.job_id], tasks[trial.task.digest], working.get(trial.worker or "", ()))
        for trial in running
    ]
