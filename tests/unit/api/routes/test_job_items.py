"""Jobs as they go over the wire: an ended one is made once, and anew after it was retried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from seatrial.api.routes.jobs import job_items
from seatrial.domain.job import AgentSpec, Job, JobSpec, JobStatus, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.listing import JobListing
from seatrial.ports.store import JobFilter, Page
from seatrial.shapes.jobs import JobItem
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


async def a_job(store: MemoryStore) -> Job:
    spec = JobSpec(tasks=(TaskRef(name="t", digest=f"sha256:{0:064x}"),), agents=(AgentSpec(name="oracle"),))
    return await store.jobs.create(spec, tuple(plan(spec)), NOW)


async def finish(store: MemoryStore, outcome: Outcome, now: datetime) -> int:
    [trial] = await store.trials.claim("w", MINUTE, 1, now)
    await store.trials.finish(trial.id, trial.try_number, Result(outcome=outcome, seconds=2.0), now)
    return trial.id


Items = Callable[[Page, JobFilter, bool], Awaitable[list[JobItem]]]


def items_of(store: MemoryStore) -> Items:
    return partial(job_items, store.jobs, JobListing(store.jobs), EndedJobs())


async def page_of(items: Items, *, with_score: bool = False) -> list[JobItem]:
    return await items(Page(), JobFilter(), with_score)


async def test_an_ended_job_is_made_once_and_an_open_one_every_time() -> None:
    store = MemoryStore()
    items = items_of(store)
    await a_job(store)
    [waiting], [still] = await page_of(items), await page_of(items)
    assert waiting == still and waiting is not still
    await finish(store, Outcome.PASSED, NOW)
    [ended], [again] = await page_of(items), await page_of(items)
    assert again is ended
    assert (ended.status, ended.counts.passed, ended.score) == (JobStatus.COMPLETED, 1, None)
    [scored] = await page_of(items, with_score=True)
    assert scored.score is not None and scored.model_copy(update={"score": None, "scores": None}) == ended


async def test_a_retried_job_is_told_anew_and_so_is_its_second_end() -> None:
    store = MemoryStore()
    items = items_of(store)
    await a_job(store)
    trial_id = await finish(store, Outcome.ERROR, NOW)
    await page_of(items)
    await store.jobs.retry_trials([trial_id], NOW)
    [retried] = await page_of(items)
    assert (retried.ended_at, retried.counts.queued, retried.counts.error) == (None, 1, 0)
    await finish(store, Outcome.PASSED, NOW + MINUTE)
    [ended] = await page_of(items)
    assert (ended.ended_at, ended.counts.passed, ended.counts.error) == (NOW + MINUTE, 1, 0)


async def test_a_page_keeps_its_order_with_some_of_it_remembered() -> None:
    store = MemoryStore()
    items = items_of(store)
    first = await a_job(store)
    await finish(store, Outcome.PASSED, NOW)
    await page_of(items)
    second, third = await a_job(store), await a_job(store)
    assert [item.id for item in await page_of(items)] == [third.id, second.id, first.id]
