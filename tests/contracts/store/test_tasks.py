"""Tasks and datasets are kept by content and by name."""

from __future__ import annotations

import pytest

from seatrial.domain.task import Dataset, TaskRef
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, a_task


async def test_a_saved_task_comes_back_as_it_was(store: Store) -> None:
    task = a_task()
    await store.tasks.save(task, NOON)
    assert await store.tasks.get(task.digest) == task


async def test_an_unknown_task_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.tasks.get("sha256:nothing")


async def test_tasks_are_found_by_name_and_the_one_saved_last_comes_first(store: Store) -> None:
    old, new, other = a_task(content="a"), a_task(content="b"), a_task(name="other", content="c")
    for minutes, task in enumerate((old, new, other)):
        await store.tasks.save(task, NOON + minutes * MINUTE)
    assert await store.tasks.find("hello") == [new, old]
    assert await store.tasks.find() == [other, new, old]
    assert await store.tasks.find(limit=1) == [other]
    await store.tasks.save(old, NOON + 9 * MINUTE)
    assert await store.tasks.find("hello") == [old, new]


async def test_saving_the_same_digest_again_keeps_what_was_there(store: Store) -> None:
    task = a_task()
    await store.tasks.save(task, NOON)
    await store.tasks.save(task.model_copy(update={"description": "changed"}), NOON + MINUTE)
    assert await store.tasks.get(task.digest) == task


async def test_a_dataset_is_written_once(store: Store) -> None:
    refs = (TaskRef(name="hello", digest="sha256:1"),)
    saved = await store.tasks.save_dataset(Dataset(name="small", version="1", tasks=refs), NOON)
    assert saved.created_at == NOON
    again = await store.tasks.save_dataset(Dataset(name="small", version="1", tasks=refs), NOON + MINUTE)
    assert again == saved
    with pytest.raises(Conflict):
        await store.tasks.save_dataset(Dataset(name="small", version="1", tasks=()), NOON)
    assert await store.tasks.dataset("small", "1") == saved


async def test_a_dataset_without_a_version_is_the_one_saved_last(store: Store) -> None:
    for version in ("2", "10", "1"):
        await store.tasks.save_dataset(Dataset(name="small", version=version), NOON)
    assert (await store.tasks.dataset("small")).version == "1"
    assert [dataset.version for dataset in await store.tasks.datasets()] == ["1", "10", "2"]
    with pytest.raises(NotFound):
        await store.tasks.dataset("small", "3")
    with pytest.raises(NotFound):
        await store.tasks.dataset("large")


async def test_tasks_are_read_together_in_the_order_asked_for(store: Store) -> None:
    one, two = a_task("one", "1"), a_task("two", "2")
    for task in (one, two):
        await store.tasks.save(task, NOON)
    assert await store.tasks.get_many([two.digest, one.digest, two.digest]) == [two, one, two]
    assert await store.tasks.get_many([]) == []
    with pytest.raises(NotFound, match=a_task("three", "3").digest):
        await store.tasks.get_many([one.digest, a_task("three", "3").digest])


async def test_pages_of_tasks_go_by_name(store: Store) -> None:
    kept = [a_task("beta", "1"), a_task("alpha", "2"), a_task("alpha", "3"), a_task("gamma", "4")]
    for task in kept:
        await store.tasks.save(task, NOON)
    in_order = [kept[1], kept[2], kept[0], kept[3]]
    assert await store.tasks.page(None, 10) == in_order
    last = in_order[1]
    assert await store.tasks.page(TaskRef(name=last.name, digest=last.digest), 1) == [kept[0]]
    assert await store.tasks.page(TaskRef(name="gamma", digest=kept[3].digest), 5) == []
