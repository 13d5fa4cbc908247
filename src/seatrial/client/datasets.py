"""Dataset methods."""

from __future__ import annotations

import uuid

from seatrial.client.ask import Ask, given, place, reads
from seatrial.client.verbs import Group, verb
from seatrial.domain.task import Dataset
from seatrial.shapes.datasets import DatasetImport, DatasetItem, DatasetList, DatasetRequest


def create_dataset(wanted: DatasetRequest) -> Ask[Dataset]:
    """Registers tasks under a name and a version. A version never changes."""
    once = (("Idempotency-Key", uuid.uuid4().hex),)
    return Ask("POST", "/datasets", reads(Dataset), body=wanted, headers=once, repeatable=True)


def import_dataset(name: str, version: str | None = None) -> Ask[Dataset]:
    """Imports a dataset and its tasks from the registry that the service is configured with. Admins only."""
    wanted = DatasetImport(name=name, version=version)
    return Ask("POST", "/datasets/import", reads(Dataset), body=wanted, is_long=True)


def list_datasets() -> Ask[list[DatasetItem]]:
    """All datasets, newest first."""
    return Ask("GET", "/datasets", lambda answer: reads(DatasetList)(answer).items)


def get_dataset(name: str, version: str | None = None) -> Ask[Dataset]:
    """One dataset with its tasks. Default version: the one saved last."""
    return Ask("GET", place("datasets", name), reads(Dataset), given(version=version))


class Datasets[Driver](Group[Driver]):
    """``client.datasets``"""

    create = verb(create_dataset)
    take_in = verb(import_dataset)
    list = verb(list_datasets)
    get = verb(get_dataset)
