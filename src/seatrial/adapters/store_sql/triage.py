"""Notes, marks, names and pins of jobs, saved views. Behind ``store.triage``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.job_changes import unknown_job
from seatrial.adapters.store_sql.rows import values_of
from seatrial.adapters.store_sql.tables import jobs, saved_views, trial_marks, trial_notes, trials
from seatrial.domain.triage import (
    MOST_MARKS,
    MOST_NOTES,
    MOST_VIEWS,
    MarkKind,
    Neighbours,
    Note,
    SavedView,
    Triage,
    TriageLine,
    TriageMark,
    ViewPage,
)
from seatrial.errors import Conflict, NotFound

_marks_of = sa.select(trial_marks).where(trial_marks.c.trial_id == sa.bindparam("trial"))
_notes_of = sa.select(trial_notes).where(trial_notes.c.trial_id == sa.bindparam("trial"))
_of_job = sa.select(trials.c.id).where(trials.c.job_id == sa.bindparam("job"))
_counted_notes = sa.select(trial_notes.c.trial_id, sa.func.count().label("notes")).group_by(trial_notes.c.trial_id)


class SqlTriage:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_note(self, trial_id: int, text: str, author: str, now: datetime) -> Note:
        def operation(connection: Connection) -> Note:
            _lock_trial(connection, trial_id)
            if _count(connection, trial_notes, trial_notes.c.trial_id == trial_id) >= MOST_NOTES:
                raise Conflict(f"Trial {trial_id} has {MOST_NOTES} notes.", fix="Delete one first.")
            values = {"trial_id": trial_id, "text": text, "author": author, "at": now}
            (row,) = values_of(connection.execute(sa.insert(trial_notes).values(values).returning(*trial_notes.c)))
            return Note(**row)

        return await self._database.write(operation)

    async def delete_note(self, trial_id: int, note_id: int) -> None:
        gone = sa.delete(trial_notes).where(trial_notes.c.id == note_id, trial_notes.c.trial_id == trial_id)
        if not await self._database.change(gone):
            raise NotFound(f"Trial {trial_id} has no note {note_id}.")

    async def put_mark(self, mark: TriageMark) -> None:
        def operation(connection: Connection) -> None:
            _lock_trial(connection, mark.trial_id)
            known = sa.update(trial_marks).where(_is(mark.trial_id, mark.kind, mark.name))
            if connection.execute(known.values(value=mark.value, author=mark.author, at=mark.at)).rowcount:
                return
            if _count(connection, trial_marks, trial_marks.c.trial_id == mark.trial_id) >= MOST_MARKS:
                raise Conflict(f"Trial {mark.trial_id} has {MOST_MARKS} tags and labels.", fix="Remove one first.")
            connection.execute(sa.insert(trial_marks).values({**mark.model_dump(), "kind": mark.kind.value}))

        await self._database.write(operation)

    async def remove_mark(self, trial_id: int, kind: MarkKind, name: str = "") -> None:
        def operation(connection: Connection) -> None:
            _lock_trial(connection, trial_id)
            connection.execute(sa.delete(trial_marks).where(_is(trial_id, kind, name)))

        await self._database.write(operation)

    async def of_trial(self, trial_id: int) -> Triage:
        def operation(connection: Connection) -> Triage:
            given = {"trial": trial_id}
            if connection.execute(sa.select(trials.c.id).where(trials.c.id == trial_id)).first() is None:
                raise _unknown(trial_id)
            marks = connection.execute(_marks_of.order_by(trial_marks.c.kind, trial_marks.c.name), given)
            notes = connection.execute(_notes_of.order_by(trial_notes.c.id), given)
            return Triage(
                trial_id=trial_id,
                marks=tuple(TriageMark(**row) for row in values_of(marks)),
                notes=tuple(Note(**row) for row in values_of(notes)),
            )

        return await self._database.read(operation)

    async def of_job(self, job_id: int) -> list[TriageLine]:
        def operation(connection: Connection) -> list[TriageLine]:
            given = {"job": job_id}
            marks = sa.select(trial_marks).where(trial_marks.c.trial_id.in_(_of_job))
            notes = _counted_notes.where(trial_notes.c.trial_id.in_(_of_job))
            counted = {row.trial_id: row.notes for row in connection.execute(notes, given)}
            return _lines(values_of(connection.execute(marks.order_by(trial_marks.c.name), given)), counted)

        return await self._database.read(operation)

    async def rename_job(self, job_id: int, name: str | None, author: str, now: datetime) -> None:
        await self._change_job(job_id, renamed=name, renamed_by=author, renamed_at=now)

    async def pin_job(self, job_id: int, pinned: bool, author: str, now: datetime) -> None:
        await self._change_job(job_id, pinned_at=now if pinned else None, pinned_by=author)

    async def neighbours(self, trial_id: int) -> Neighbours:
        def operation(connection: Connection) -> Neighbours:
            job_id = connection.execute(sa.select(trials.c.job_id).where(trials.c.id == trial_id)).scalar()
            if job_id is None:
                raise _unknown(trial_id)
            of_job = trials.c.job_id == job_id
            query = sa.select(
                _one(sa.func.max(trials.c.id), of_job, trials.c.id < trial_id).label("previous"),
                _one(sa.func.min(trials.c.id), of_job, trials.c.id > trial_id).label("next"),
                _one(sa.func.count(), of_job, trials.c.id <= trial_id).label("place"),
                _one(sa.func.count(), of_job).label("total"),
            )
            (row,) = values_of(connection.execute(query))
            return Neighbours(**row)

        return await self._database.read(operation)

    async def save_view(self, page: ViewPage, name: str, query: str, author: str, now: datetime) -> SavedView:
        values: dict[str, Any] = {"query": query, "author": author, "at": now}

        def operation(connection: Connection) -> SavedView:
            known = sa.update(saved_views).where(saved_views.c.page == page.value, saved_views.c.name == name)
            row = connection.execute(known.values(values).returning(*saved_views.c)).mappings().first()
            if row is None:
                if _count(connection, saved_views) >= MOST_VIEWS:
                    raise Conflict(f"There are {MOST_VIEWS} saved views.", fix="Delete one first.")
                insert = sa.insert(saved_views).values(page=page.value, name=name, **values)
                row = connection.execute(insert.returning(*saved_views.c)).mappings().one()
            return SavedView(**row)

        return await self._database.write(operation)

    async def views(self) -> list[SavedView]:
        query = sa.select(saved_views).order_by(saved_views.c.page, saved_views.c.name)
        return [SavedView(**row) for row in await self._database.rows(query)]

    async def delete_view(self, view_id: int) -> None:
        if not await self._database.change(sa.delete(saved_views).where(saved_views.c.id == view_id)):
            raise NotFound(f"There is no saved view {view_id}.")

    async def _change_job(self, job_id: int, **values: Any) -> None:
        if not await self._database.change(sa.update(jobs).where(jobs.c.id == job_id).values(**values)):
            raise unknown_job(job_id)


def _lines(marks: Iterable[dict[str, Any]], notes: dict[int, int]) -> list[TriageLine]:
    tags: dict[int, list[str]] = {}
    labels: dict[int, dict[str, str]] = {}
    reviewed: set[int] = set()
    for mark in marks:
        match mark["kind"]:
            case MarkKind.TAG:
                tags.setdefault(mark["trial_id"], []).append(mark["name"])
            case MarkKind.LABEL:
                labels.setdefault(mark["trial_id"], {})[mark["name"]] = mark["value"]
            case MarkKind.REVIEWED:
                reviewed.add(mark["trial_id"])
    return [
        TriageLine(
            trial_id=trial,
            tags=tuple(sorted(tags.get(trial, ()))),
            labels=labels.get(trial, {}),
            reviewed=trial in reviewed,
            notes=notes.get(trial, 0),
        )
        for trial in sorted({*tags, *labels, *reviewed, *notes})
    ]


def _is(trial_id: int, kind: MarkKind, name: str) -> sa.ColumnElement[bool]:
    table = trial_marks.c
    return sa.and_(table.trial_id == trial_id, table.kind == kind.value, table.name == name)


def _count(connection: Connection, table: sa.Table, *which: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(*which)).scalar_one())


def _one(what: Any, *which: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    return sa.select(what).select_from(trials).where(*which).scalar_subquery()


def _lock_trial(connection: Connection, trial_id: int) -> None:
    """So that two callers do not exceed a limit together, and a mark is not set twice. A worker is not blocked."""
    query = sa.select(trials.c.id).where(trials.c.id == trial_id).with_for_update(key_share=True)
    if connection.execute(query).first() is None:
        raise _unknown(trial_id)


def _unknown(trial_id: int) -> NotFound:
    return NotFound(f"There is no trial {trial_id}.")
