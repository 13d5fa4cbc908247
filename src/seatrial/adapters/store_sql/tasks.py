"""Tasks and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import batched
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.rows import task_of
from seatrial.adapters.store_sql.tables import IS_HELD, IS_QUEUED, IS_RUNNING, datasets, tasks, trials
from seatrial.domain.task import Dataset, Task, TaskRef
from seatrial.errors import Conflict, NotFound

_DIGESTS_AT_ONCE = 500

_first_page = (
    sa.select(tasks.c.document).order_by(tasks.c.name, tasks.c.digest).limit(sa.bindparam("limit", type_=sa.Integer))
)
_next_page = _first_page.where(
    sa.tuple_(tasks.c.name, tasks.c.digest)
    > sa.tuple_(sa.bindparam("name", type_=sa.Text), sa.bindparam("digest", type_=sa.Text))
)


class SqlTasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, task: Task, now: datetime) -> None:
        values = {"digest": task.digest, "name": task.name, "document": task.model_dump_json()}

        def operation(connection: Connection) -> None:
            insert = insert_into(connection, tasks).values(**values, saved_at=now, used_at=now)
            connection.execute(insert.on_conflict_do_update(index_elements=[tasks.c.digest], set_={"used_at": now}))

        await self._database.write(operation)

    async def get(self, digest: str) -> Task:
        query = sa.select(tasks.c.document).where(tasks.c.digest == digest)
        document = await self._database.value(query)
        if document is None:
            raise NotFound(f"There is no task {digest}.")
        return task_of(document)

    async def get_many(self, digests: Sequence[str]) -> list[Task]:
        found: dict[str, Task] = {}
        for some in batched(dict.fromkeys(digests), _DIGESTS_AT_ONCE):
            query = sa.select(tasks.c.digest, tasks.c.document).where(tasks.c.digest.in_(some))
            for row in await self._database.rows(query):
                found[row["digest"]] = Task.model_validate_json(row["document"])
        if missing := next((digest for digest in digests if digest not in found), None):
            raise NotFound(f"There is no task {missing}.")
        return [found[digest] for digest in digests]

    async def page(self, after: TaskRef | None, limit: int) -> list[Task]:
        query = _first_page if after is None else _next_page
        given = {"limit": limit} | ({} if after is None else after.model_dump())
        return [task_of(document) for document in await self._database.column(query, given)]

    async def find(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        query = sa.select(tasks.c.document).order_by(tasks.c.used_at.desc(), tasks.c.name, tasks.c.digest).limit(limit)
        if name is not None:
            query = query.where(tasks.c.name == name)
        return [task_of(document) for document in await self._database.column(query)]

    async def delete(self, digest: str) -> None:
        await self._database.write(lambda connection: _delete_task(connection, digest))

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        kept = dataset.model_copy(update={"created_at": dataset.created_at or now})
        values = {"name": kept.name, "version": kept.version, "document": kept.model_dump_json()}

        def operation(connection: Connection) -> Dataset:
            connection.execute(insert_into(connection, datasets).values(values).on_conflict_do_nothing())
            there = Dataset.model_validate_json(connection.execute(_dataset(kept.name, kept.version)).scalar_one())
            if there.model_copy(update={"created_at": kept.created_at}) != kept:
                raise Conflict(
                    f"Dataset {dataset.id} exists with other content.", fix="Give the new content a new version."
                )
            return there

        return await self._database.write(operation)

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        document = await self._database.value(_dataset(name, version))
        if document is None:
            raise NotFound(f"There is no dataset {name if version is None else f'{name}@{version}'}.")
        return Dataset.model_validate_json(document)

    async def datasets(self) -> list[Dataset]:
        query = sa.select(datasets.c.document).order_by(datasets.c.id.desc())
        return [Dataset.model_validate_json(document) for document in await self._database.column(query)]


def _delete_task(connection: Connection, digest: str) -> None:
    documents = connection.execute(sa.select(datasets.c.document)).scalars()
    for dataset in map(Dataset.model_validate_json, documents):
        if any(task.digest == digest for task in dataset.tasks):
            raise Conflict(f"Dataset {dataset.id} holds this task.")
    in_use = sa.select(trials.c.job_id).where(trials.c.task_digest == digest, sa.or_(IS_HELD, IS_QUEUED, IS_RUNNING))
    if (job_id := connection.execute(in_use.limit(1)).scalar()) is not None:
        raise Conflict(f"Job {job_id} has trials of this task left to do.", fix="Cancel it or wait for its end.")
    if not connection.execute(sa.delete(tasks).where(tasks.c.digest == digest)).rowcount:
        raise NotFound(f"There is no task {digest}.")


def _dataset(name: str, version: str | None) -> sa.Select[str]:
    query = sa.select(datasets.c.document).where(datasets.c.name == name).order_by(datasets.c.id.desc()).limit(1)
    return query if version is None else query.where(datasets.c.version == version)


def insert_into(connection: Connection, table: sa.Table) -> Any:
    """Both databases have ON CONFLICT with the same syntax, but SQLAlchemy offers it per dialect only."""
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)
