"""``/api/v1/datasets`` and ``/api/v1/samples``: named, versioned lists of tasks, and tasks to try."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Depends, Path, Query

import seatrial
from seatrial import wiring
from seatrial.api.context import OnceDep, ServiceDep
from seatrial.api.routes.pages import RequestedPage, requested_page
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.task import Dataset
from seatrial.engine.jobs.choice import choose, dataset_of, find_dataset
from seatrial.errors import Conflict, SetupProblem
from seatrial.shapes.answers import Plain
from seatrial.shapes.datasets import (
    DatasetImport,
    DatasetItem,
    DatasetList,
    DatasetRequest,
    DatasetTaskPage,
    SampleTasks,
)
from seatrial.shapes.tasks import TaskItem

router = native_router("", "datasets")
DatasetName = Annotated[Plain, Path()]
Version = Annotated[Plain | None, Query(description="Default: the version saved last.")]


@router.get("/datasets", responses=errors())
async def list_datasets(service: ServiceDep) -> DatasetList:
    """All datasets, newest first."""
    return DatasetList(items=[DatasetItem.of(each) for each in await service.installation.store.tasks.datasets()])


@router.post("/datasets", status_code=201, responses=errors(400, 409))
async def create_dataset(service: ServiceDep, wanted: DatasetRequest, once: OnceDep) -> Dataset:
    """Registers tasks under a name and a version. A version never changes: the same content again returns the same
    dataset (with or without an `Idempotency-Key`), different content is a 409."""
    store = service.installation.store
    tasks = await choose(store.tasks, wanted.tasks, None, wanted.selection)
    dataset = dataset_of(wanted.name, wanted.version, wanted.description, tasks)
    return await store.tasks.save_dataset(dataset, service.installation.clock())


@router.post("/datasets/import", status_code=201, responses=errors(400, 404, 409, 507))
async def import_dataset(service: ServiceDep, wanted: DatasetImport) -> Dataset:
    """Imports a dataset and its tasks from the Harbor registry that the operator configured (`SEATRIAL_REGISTRY`).

    Admins only: it fetches everything that the registry file names, and may take minutes. Importing the same dataset
    again returns it. 409 if no registry is configured, or if the version exists with different content.
    """
    registry = service.installation.settings.registry
    if not registry:
        raise Conflict("No registry is configured.", fix="Set SEATRIAL_REGISTRY to a file or URL.")
    return await wiring.import_dataset(service.installation, registry, wanted.name, wanted.version)


@router.get("/datasets/{name}", responses=errors(404))
async def get_dataset(service: ServiceDep, name: DatasetName, version: Version = None) -> Dataset:
    """One dataset with the names and digests of its tasks."""
    return await find_dataset(service.installation.store.tasks, name, version)


@router.get("/datasets/{name}/tasks", responses=errors(404))
async def list_dataset_tasks(
    service: ServiceDep,
    name: DatasetName,
    page: Annotated[RequestedPage, Depends(requested_page)],
    version: Version = None,
) -> DatasetTaskPage:
    """The tasks of a dataset with their limits and resources, in its order. Name the version if you read several pages:
    another one may be saved between two of them."""
    tasks = service.installation.store.tasks
    listed = (await find_dataset(tasks, name, version)).tasks
    begin = page.number() or 0
    end = begin + page.limit
    found = await tasks.get_many([ref.digest for ref in listed[begin:end]])
    return DatasetTaskPage(items=found, next=str(end) if end < len(listed) else None)


@router.post("/samples", status_code=201, responses=errors(507), tags=["tasks"])
async def add_samples(service: ServiceDep) -> SampleTasks:
    """Adds the bundled sample tasks to the library."""
    tasks = await service.installation.library.add(_samples())
    return SampleTasks(items=[TaskItem.of(task) for task in tasks])


def _samples() -> FilePath:
    """The sample tasks of the installed package, or of the checkout that this runs from."""
    package = FilePath(seatrial.__file__).parent
    for folder in (package / "samples", package.parents[1] / "samples"):
        if folder.is_dir():
            return folder
    raise SetupProblem("This installation has no sample tasks.", fix="Install it again from its wheel.")
