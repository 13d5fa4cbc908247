"""Tasks and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.task import Dataset, Task, TaskRef


class TaskStore(Protocol):
    async def save_task(self, task: Task, now: datetime) -> None:
        """Keeps a task; saving the same digest again changes nothing but its last use."""
        ...

    async def task(self, digest: str) -> Task: ...

    async def tasks(self, digests: Sequence[str]) -> list[Task]:
        """In the order asked for; ``NotFound`` names the first that is not there."""
        ...

    async def task_page(self, after: TaskRef | None, limit: int) -> list[Task]:
        """In order of name and digest, from behind ``after`` on."""
        ...

    async def find_tasks(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        """By exact name, or all; newest first."""
        ...

    async def delete_task(self, digest: str) -> None:
        """Forgets a task; ``Conflict`` while a dataset or a job that has not ended needs it.

        Its archive in the blobs is the caller's to delete, after this."""
        ...

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        """A name and version is written once; other content under the same id raises ``Conflict``."""
        ...

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        """Without a version: the one saved last."""
        ...

    async def datasets(self) -> list[Dataset]: ...
