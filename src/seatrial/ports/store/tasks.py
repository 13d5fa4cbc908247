"""Tasks and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.task import Dataset, Task, TaskRef


class TaskStore(Protocol):
    async def save(self, task: Task, now: datetime) -> None:
        """Saves a task. Saving the same digest again updates only its last use."""

    async def get(self, digest: str) -> Task: ...

    async def get_many(self, digests: Sequence[str]) -> list[Task]:
        """In the given order. ``NotFound`` names the first unknown digest."""

    async def page(self, after: TaskRef | None, limit: int) -> list[Task]:
        """In order of name and digest, after the task ``after``."""

    async def find(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        """All tasks, or those with this exact name; newest first."""

    async def delete(self, digest: str) -> None:
        """Deletes a task. Raises ``Conflict`` while a dataset or an unfinished job needs it.

        The caller deletes its archive in the blobs after this."""

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        """Saves a dataset. Other content under the same name and version raises ``Conflict``."""

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        """Without a version, the one that was saved last."""

    async def datasets(self) -> list[Dataset]: ...
