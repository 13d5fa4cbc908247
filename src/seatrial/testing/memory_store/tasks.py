"""Tasks and datasets in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from seatrial.domain.task import Dataset, Task, TaskRef
from seatrial.domain.trial import TrialState
from seatrial.errors import Conflict, NotFound
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryTasks:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._tasks: dict[str, tuple[Task, datetime]] = {}
        self._datasets: dict[str, Dataset] = {}

    async def save(self, task: Task, now: datetime) -> None:
        kept, _ = self._tasks.get(task.digest, (task, now))
        self._tasks[task.digest] = (kept, now)

    async def get(self, digest: str) -> Task:
        if digest not in self._tasks:
            raise NotFound(f"There is no task {digest}.")
        return self._tasks[digest][0]

    async def get_many(self, digests: Sequence[str]) -> list[Task]:
        return [await self.get(digest) for digest in digests]

    async def page(self, after: TaskRef | None, limit: int) -> list[Task]:
        found = sorted((task for task, _ in self._tasks.values()), key=lambda task: (task.name, task.digest))
        if after is not None:
            found = [task for task in found if (task.name, task.digest) > (after.name, after.digest)]
        return found[:limit]

    async def find(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        found = [(task, used) for task, used in self._tasks.values() if name in (None, task.name)]
        found.sort(key=lambda pair: (-pair[1].timestamp(), pair[0].name, pair[0].digest))
        return [task for task, _ in found[:limit]]

    async def delete(self, digest: str) -> None:
        await self.get(digest)
        for dataset in self._datasets.values():
            if any(task.digest == digest for task in dataset.tasks):
                raise Conflict(f"Dataset {dataset.id} holds this task.")
        if (job_id := self._job_that_needs(digest)) is not None:
            raise Conflict(f"Job {job_id} has trials of this task left to do.")
        del self._tasks[digest]

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        kept = dataset.model_copy(update={"created_at": dataset.created_at or now})
        there = self._datasets.setdefault(kept.id, kept)
        if there.model_copy(update={"created_at": kept.created_at}) != kept:
            raise Conflict(f"Dataset {dataset.id} exists with other content.")
        return there

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        for dataset in reversed(self._datasets.values()):
            if dataset.name == name and version in (None, dataset.version):
                return dataset
        raise NotFound(f"There is no dataset {name}.")

    async def datasets(self) -> list[Dataset]:
        return list(reversed(self._datasets.values()))

    def _job_that_needs(self, digest: str) -> int | None:
        unfinished = (trial for trial in self._records.trials.values() if trial.state is not TrialState.ENDED)
        return next((trial.job_id for trial in unfinished if trial.task.digest == digest), None)
