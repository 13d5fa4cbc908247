"""A claim takes only what the worker can run and has room for; jobs take turns with room, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest

from seatrial.domain.fleet.needs import Abilities, Needs
from seatrial.domain.fleet.packing import HOLD, PATIENCE, Offer, Packing, Size
from seatrial.domain.job import Job, plan
from seatrial.domain.trial import Trial
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, a_spec, all_trials, passed

_USUAL = Size(memory_mb=2048, cpus=1)


async def submit(store: Store, trials: int, needs: Needs, concurrency: int | None = None) -> Job:
    spec = a_spec(trials, concurrency)
    wanted = {(task.digest, 0): needs for task in spec.tasks}
    return await store.jobs.create(spec, tuple(plan(spec, wanted)), NOON)


def room(memory_gb: float, cpus: float = 100, free_gb: float | None = None, held: tuple[Size, ...] = ()) -> Offer:
    size = Size(memory_mb=int(memory_gb * 1024), cpus=cpus)
    free = size if free_gb is None else Size(memory_mb=int(free_gb * 1024), cpus=cpus)
    return Offer(packing=Packing(size=size, usual=_USUAL), free=free, held=held)


def gb(memory: float, cpus: float = 1) -> Needs:
    return Needs(memory_mb=int(memory * 1024), cpus=cpus)


async def claim(store: Store, offer: Offer, now: datetime = NOON, worker: str = "w", limit: int = 50) -> list[Trial]:
    return await store.trials.claim(worker, MINUTE, limit, now, offer=offer)


@pytest.mark.parametrize(
    ("needs", "lacking", "able"),
    [
        (Needs(sandbox="docker"), Abilities(sandboxes=("oci",)), Abilities(sandboxes=("oci", "docker"))),
        (Needs(sandbox="harbor:docker"), Abilities(sandboxes=("oci",)), Abilities(sandboxes=("docker",))),
        (Needs(), Abilities(sandboxes=()), Abilities(sandboxes=("docker",))),
        (Needs(architecture="arm64"), Abilities(architecture="amd64"), Abilities(architecture="arm64")),
        (Needs(gpus=2, sandbox="harbor:docker"), Abilities(gpus=1), Abilities(gpus=2)),
        (Needs(elevated=True), Abilities(elevated=False), Abilities(elevated=True)),
        (Needs(agent="a.b:C"), Abilities(lacks=("a.b:C",)), Abilities(lacks=("a.b:D",))),
    ],
    ids=["sandbox", "engine", "no sandbox", "architecture", "gpus", "elevated", "agent"],
)
async def test_only_a_worker_that_can_run_a_trial_claims_it(
    store: Store, needs: Needs, lacking: Abilities, able: Abilities
) -> None:
    await submit(store, 2, needs)
    plain = await submit(store, 1, Needs(sandbox="harbor:modal"))
    assert [trial.job_id for trial in await claim(store, Offer(abilities=lacking))] == [plain.id]
    taken = await claim(store, Offer(abilities=able))
    assert [trial.needs for trial in taken] == [needs, needs]


async def test_a_worker_that_says_nothing_takes_everything(store: Store) -> None:
    await submit(store, 1, Needs(sandbox="docker", gpus=4, elevated=True, architecture="arm64", agent="x:Y"))
    assert len(await store.trials.claim("old", MINUTE, 5, NOON)) == 1


@pytest.mark.parametrize(
    ("needs", "offer", "count"),
    [
        (gb(8), room(21), 2),
        (gb(2), room(21), 10),
        (gb(0.5, cpus=2), room(21, cpus=8), 4),
        (Needs(), room(21, cpus=8), 8),
        (Needs(), room(1, cpus=0.5), 1),
        (gb(2), room(21, free_gb=4.5), 2),
        (gb(30), room(21), 0),
    ],
    ids=["memory", "many", "processors", "undeclared", "tiny machine", "what is free", "too large"],
)
async def test_memory_and_processors_are_packed(store: Store, needs: Needs, offer: Offer, count: int) -> None:
    await submit(store, 12, needs)
    assert len(await claim(store, offer)) == count


async def test_smaller_trials_go_where_a_larger_one_does_not_fit(store: Store) -> None:
    large, small = await submit(store, 3, gb(8)), await submit(store, 40, gb(1))
    counted = Counter(trial.job_id for trial in await claim(store, room(21)))
    assert 8 * counted[large.id] + counted[small.id] == 21 and counted[large.id] in (1, 2)


async def test_jobs_take_turns_with_room(store: Store) -> None:
    jobs = [await submit(store, 20, gb(2)) for _ in range(3)]
    counted = Counter(trial.job_id for trial in await claim(store, room(12)))
    assert counted == {job.id: 2 for job in jobs}


async def test_a_job_that_does_not_fit_does_not_hide_others(store: Store) -> None:
    for _ in range(3):
        await submit(store, 2, gb(16))
    small = await submit(store, 5, gb(1))
    assert [trial.job_id for trial in await claim(store, room(8), limit=2)] == [small.id] * 2


async def test_a_jobs_own_limit_counts_only_what_was_taken(store: Store) -> None:
    spec = a_spec(4, concurrency=2)
    sizes = [gb(30), gb(1), gb(1), gb(1)]
    wanted = {(task.digest, 0): needs for task, needs in zip(spec.tasks, sizes, strict=True)}
    await store.jobs.create(spec, tuple(plan(spec, wanted)), NOON)
    assert [trial.needs for trial in await claim(store, room(8))] == [gb(1), gb(1)]
    assert await claim(store, room(8)) == []


async def test_needs_survive_in_every_reading(store: Store) -> None:
    needs = Needs(memory_mb=512, cpus=0.5, sandbox="pkg.mod:Some Class", agent="a b:C", elevated=True)
    await submit(store, 1, needs)
    [row] = await all_trials(store)
    assert row.trial.needs == needs
    [trial] = await claim(store, Offer())
    await store.trials.finish(trial.id, 1, passed(), NOON)
    [again] = await store.jobs.add_attempts([trial.id], NOON)
    assert (await store.trials.get(again)).trial.needs == needs


async def test_nothing_overtakes_a_trial_that_waited_too_long(store: Store) -> None:
    large = await submit(store, 1, gb(16))
    small = await submit(store, 9, gb(1))
    partly = room(20, free_gb=2, held=(Size(memory_mb=1024, cpus=1),) * 18)
    assert [trial.job_id for trial in await claim(store, partly, limit=1)] == [small.id]
    assert [trial.job_id for trial in await claim(store, partly, NOON + PATIENCE / 2, limit=1)] == [small.id]
    late = NOON + PATIENCE
    assert await claim(store, partly, late) == []
    # Only one worker keeps room for it, until it is gone.
    other = await claim(store, partly, late, worker="other", limit=1)
    assert [trial.job_id for trial in other] == [small.id]
    assert await claim(store, partly, late + HOLD, worker="other") == []
    assert [trial.job_id for trial in await claim(store, room(20, free_gb=16), late + HOLD, limit=1)] == [large.id]
    assert [trial.job_id for trial in await claim(store, partly, late + HOLD, limit=1)] == [small.id]


async def test_a_trial_that_gets_the_place_of_an_equal_one_holds_nobody_back(store: Store) -> None:
    large = await submit(store, 2, gb(8))
    small = await submit(store, 9, gb(1))
    assert len(await claim(store, room(10), limit=1)) == 1
    full = room(10, free_gb=2, held=(Size(memory_mb=8192, cpus=1),))
    assert [trial.job_id for trial in await claim(store, full, limit=1)] == [small.id]
    assert [trial.job_id for trial in await claim(store, full, NOON + 2 * PATIENCE, limit=1)] == [small.id]
    # When the equal one has ended, the waiting trial comes first.
    assert [trial.job_id for trial in await claim(store, room(10), NOON + 2 * PATIENCE, limit=1)] == [large.id]


async def test_a_worker_that_could_never_hold_it_is_not_held_back(store: Store) -> None:
    await submit(store, 1, gb(16))
    small = await submit(store, 9, gb(1))
    assert len(await claim(store, room(8), limit=1)) == 1
    assert [trial.job_id for trial in await claim(store, room(8), NOON + 2 * PATIENCE, limit=1)] == [small.id]


async def test_a_waiting_trial_that_was_cancelled_holds_nobody_back(store: Store) -> None:
    large = await submit(store, 1, gb(16))
    small = await submit(store, 9, gb(1))
    partly = room(20, free_gb=2)
    assert len(await claim(store, partly, limit=1)) == 1
    await store.jobs.cancel(large.id, NOON)
    assert [trial.job_id for trial in await claim(store, partly, NOON + 2 * PATIENCE, limit=1)] == [small.id]
