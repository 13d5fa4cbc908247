"""A job larger than every machine is refused, and a job without a worker says what it waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seatrial.domain.fleet.needs import Abilities, Needs
from seatrial.domain.fleet.packing import Packing, Size
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import Resources, Task, TaskFormat, TaskRef
from seatrial.engine.clock import system_clock
from seatrial.engine.jobs.places import Places
from seatrial.errors import Unsupported
from seatrial.ports.store import Heartbeat
from seatrial.testing.memory_store import MemoryStore

USUAL = Size(memory_mb=2048, cpus=1)
SMALL, LARGE = (Packing(size=Size(memory_mb=gb * 1024, cpus=8), usual=USUAL) for gb in (20, 60))


def task(memory_gb: float | None = None, cpus: float | None = None) -> Task:
    wants = Resources(memory_mb=None if memory_gb is None else int(memory_gb * 1024), cpus=cpus)
    digest = "sha256:" + "0" * 64
    return Task(digest=digest, name="big", format=TaskFormat.HARBOR, instruction="Do it.", resources=wants)


def spec(concurrency: int | None = None) -> JobSpec:
    ref = TaskRef(name="big", digest=task().digest)
    return JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), concurrency=concurrency)


async def places(store: MemoryStore, *workers: Heartbeat, **more: object) -> Places:
    for worker in workers:
        await store.workers.beat(worker, system_clock())
    return Places(store, system_clock, timedelta(minutes=1), lambda worker: worker == "dead", **more)  # type: ignore[arg-type]


def worker(name: str = "w", packing: Packing | None = SMALL, **more: object) -> Heartbeat:
    base = Heartbeat(worker=name, host="h", pid=1, capacity=8, started_at=system_clock(), packing=packing)
    return base.model_copy(update=more)


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [(task(memory_gb=32), "32 GB of memory"), (task(memory_gb=4, cpus=16), "16 CPUs and 4 GB of memory")],
)
async def test_a_task_larger_than_every_worker_is_refused(asked: Task, numbers: str) -> None:
    there = await places(MemoryStore(), worker(), worker("dead", packing=LARGE), worker("old", LARGE, draining=True))
    with pytest.raises(Unsupported) as refused:
        await there.require(spec(), [asked])
    assert numbers in str(refused.value) and "8 CPUs and 20 GB" in str(refused.value)
    assert "SEATRIAL_LARGEST_MACHINE" in refused.value.fix
    await there.require(spec(), [task(memory_gb=16, cpus=8), task()])


async def test_it_is_accepted_if_a_worker_could_hold_it() -> None:
    big = [task(memory_gb=32)]
    for workers, more in (
        ((worker(), worker("larger", LARGE)), {}),
        ((worker(),), {"largest": LARGE}),
        ((worker(), worker("counts", None)), {}),
        ((worker(),), {"takes_any": True}),
        ((), {}),
    ):
        await (await places(MemoryStore(), *workers, **more)).require(spec(), big)


async def test_a_command_at_the_machine_counts_its_own_worker() -> None:
    here = await places(MemoryStore(), here=SMALL)
    with pytest.raises(Unsupported):
        await here.require(spec(), [task(memory_gb=32)])
    await here.require(spec(), [task(memory_gb=16)])
    await here.require(spec(concurrency=2), [task(memory_gb=32)])


async def test_the_largest_machine_alone_decides_without_workers() -> None:
    there = await places(MemoryStore(), largest=LARGE)
    await there.require(spec(), [task(memory_gb=32)])
    with pytest.raises(Unsupported, match="the largest worker has room for 8 CPUs and 60 GB"):
        await there.require(spec(), [task(memory_gb=64)])


async def obstacle(needs: Needs, *workers: Heartbeat) -> str:
    store = MemoryStore()
    there = await places(store, *workers)
    job = await store.jobs.create(spec(), tuple(plan(spec(), {(task().digest, 0): needs})), system_clock())
    return await there.obstacle(job.id)


async def test_a_job_says_what_it_waits_for() -> None:
    assert "No worker is alive" in await obstacle(Needs())
    assert await obstacle(Needs(), worker()) == ""
    docker = Needs(sandbox="docker")
    only_oci = worker(abilities=Abilities(sandboxes=("oci",)))
    assert "They need the sandbox docker." in await obstacle(docker, only_oci)
    assert await obstacle(docker, only_oci, worker("b", abilities=Abilities(sandboxes=("docker",)))) == ""
    large = await obstacle(Needs(memory_mb=32 * 1024), worker())
    assert "32 GB of memory, and the largest worker has 8 CPUs and 20 GB" in large


async def test_a_job_without_queued_trials_waits_for_nobody() -> None:
    store = MemoryStore()
    there = await places(store)
    job = await store.jobs.create(spec(), tuple(plan(spec())), system_clock())
    await store.trials.claim("w", timedelta(minutes=1), 5, system_clock())
    assert await there.obstacle(job.id) == ""
