"""``/api/v1/datasets`` and ``/api/v1/samples``: named, versioned lists of tasks, and tasks to try."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path, Query

from seatrial.api.context import ServiceDep
from seatrial.api.once import OnceDep
from seatrial.api.shapes import errors
from seatrial.domain.task import Dataset, TaskRef
from seatrial.engine.choice import choose
from seatrial.errors import InvalidInput
from seatrial.sample_tasks import samples_folder
from seatrial.shapes.datasets import DatasetItem, DatasetList, DatasetRequest, SampleTasks
from seatrial.shapes.page import Plain
from seatrial.shapes.tasks import TaskItem

router = APIRouter(tags=["datasets"])


@router.get("/datasets", responses=errors())
async def list_datasets(service: ServiceDep) -> DatasetList:
    """All datasets, the newest first."""
    return DatasetList(items=[DatasetItem.of(each) for each in await service.installation.store.datasets()])


@router.post("/datasets", status_code=201, responses=errors(400, 409))
async def create_dataset(service: ServiceDep, wanted: DatasetRequest, once: OnceDep) -> Dataset:
    """Registers tasks under a name and a version. A version never changes: the same content again gives the same
    dataset (with or without an `Idempotency-Key`), other content is a 409."""
    store = service.installation.store
    tasks = await choose(store, wanted.tasks, None, wanted.selection)
    times = Counter(task.name for task in tasks)
    if doubled := sorted(name for name in times if times[name] > 1):
        raise InvalidInput(f"Several tasks have the same name: {', '.join(doubled)}.", field="tasks")
    refs = tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks)
    dataset = Dataset(name=wanted.name, version=wanted.version, description=wanted.description, tasks=refs)
    return await store.save_dataset(dataset, service.installation.clock())


@router.get("/datasets/{name}", responses=errors(404))
async def get_dataset(
    service: ServiceDep,
    name: Annotated[Plain, Path()],
    version: Annotated[Plain | None, Query(description="Without it: the one saved last.")] = None,
) -> Dataset:
    """One dataset with its tasks."""
    return await service.installation.store.dataset(name, version)


@router.post("/samples", status_code=201, responses=errors(507), tags=["tasks"])
async def add_samples(service: ServiceDep) -> SampleTasks:
    """Takes in the sample tasks that came with this installation, so that there is something to run at once."""
    tasks = await service.installation.library.add(samples_folder())
    return SampleTasks(items=[TaskItem.of(task) for task in tasks])
