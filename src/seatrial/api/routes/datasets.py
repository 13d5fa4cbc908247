"""``/api/v1/datasets`` and ``/api/v1/samples``: named, versioned lists of tasks, and tasks to try."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from seatrial import wiring
from seatrial.api.context import ServiceDep
from seatrial.api.gates.once import OnceDep
from seatrial.api.routes.router import native_router
from seatrial.api.routes.shapes import errors
from seatrial.domain.task import Dataset
from seatrial.engine.jobs.choice import choose, dataset_of
from seatrial.errors import Conflict
from seatrial.sample_tasks import samples_folder
from seatrial.shapes.datasets import DatasetImport, DatasetItem, DatasetList, DatasetRequest, SampleTasks
from seatrial.shapes.page import Plain
from seatrial.shapes.tasks import TaskItem

router = native_router("", "datasets")


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
    dataset = dataset_of(wanted.name, wanted.version, wanted.description, tasks)
    return await store.save_dataset(dataset, service.installation.clock())


@router.post("/datasets/import", status_code=201, responses=errors(400, 404, 409, 507))
async def import_dataset(service: ServiceDep, wanted: DatasetImport) -> Dataset:
    """Takes a dataset in from the Harbor registry that the operator has set (`SEATRIAL_REGISTRY`), with its tasks. For
    admins: it fetches whatever that file names, and may take minutes. The same again gives the same dataset; 409 where
    no registry is set, or where the version is there with other content."""
    registry = service.installation.settings.registry
    if not registry:
        raise Conflict("This service is set to no registry.", fix="Set SEATRIAL_REGISTRY to a file or URL.")
    return await wiring.import_dataset(service.installation, registry, wanted.name, wanted.version)


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
