"""Datasets and sample tasks."""

from __future__ import annotations

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Dataset, Task, TaskSelection
from seatrial.shapes.answers import Listing, Plain, Shape
from seatrial.shapes.tasks import TaskItem

_NAME = r"^[^\x00@]+$"


class DatasetRequest(Frozen):
    """A new dataset: tasks by digest or name, or a selection of the library."""

    name: str = Field(min_length=1, max_length=200, pattern=_NAME)
    version: str = Field(default="1", min_length=1, max_length=100, pattern=_NAME)
    description: Plain = ""
    tasks: list[Plain] = Field(default=[], max_length=100_000)
    selection: TaskSelection = TaskSelection()


class DatasetImport(Frozen):
    """A dataset of the configured registry."""

    name: str = Field(min_length=1, max_length=200, pattern=_NAME)
    version: str | None = Field(default=None, min_length=1, max_length=100, pattern=_NAME)
    """Default: `head`, otherwise the highest version."""


class DatasetItem(Shape):
    name: str
    version: str
    description: str
    tasks: int

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetItem:
        found = len(dataset.tasks)
        return cls(name=dataset.name, version=dataset.version, description=dataset.description, tasks=found)


class DatasetList(Shape):
    items: list[DatasetItem]


class DatasetTaskPage(Listing[Task]):
    """One page of the tasks of a dataset, in its order."""


class SampleTasks(Shape):
    items: list[TaskItem]
