"""Read-only links, by their fingerprint. Behind ``store.links``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import links, tokens, trials
from seatrial.domain.link import Link, NewLink
from seatrial.errors import NotFound

_ending = sa.case(
    (tokens.c.expires_at < links.c.expires_at, tokens.c.expires_at),
    else_=links.c.expires_at,
)
_all = sa.select(
    *(column for column in links.c if column.name not in ("expires_at", "revoked_at")),
    sa.type_coerce(_ending, links.c.expires_at.type).label("expires_at"),
    sa.func.coalesce(links.c.revoked_at, tokens.c.revoked_at, type_=links.c.revoked_at.type).label("revoked_at"),
).outerjoin(tokens, tokens.c.id == links.c.token_id)


class SqlLinks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, link: NewLink, now: datetime) -> Link:
        insert = sa.insert(links).values(created_at=now, **link.model_dump()).returning(links.c.id)
        number = await self._database.write(lambda connection: connection.execute(insert).scalar_one())
        return Link(id=number, created_at=now, **link.model_dump())

    async def find(self, fingerprint: str) -> Link | None:
        return next(iter(await self._read(links.c.fingerprint == fingerprint)), None)

    async def all(self, job_id: int | None = None) -> list[Link]:
        return await self._read(sa.true() if job_id is None else links.c.job_id == job_id)

    async def revoke(self, link_id: int, now: datetime) -> Link:
        revoked = sa.func.coalesce(links.c.revoked_at, now, type_=links.c.revoked_at.type)
        if not await self._database.change(sa.update(links).where(links.c.id == link_id).values(revoked_at=revoked)):
            raise NotFound(f"There is no link {link_id}.")
        return (await self._read(links.c.id == link_id))[0]

    async def job_of(self, trial_id: int) -> int | None:
        job_id: int | None = await self._database.value(sa.select(trials.c.job_id).where(trials.c.id == trial_id))
        return job_id

    async def uses(self, job_id: int, trial_id: int | None, digest: str) -> bool:
        which = [trials.c.job_id == job_id, trials.c.task_digest == digest]
        if trial_id is not None:
            which.append(trials.c.id == trial_id)
        return bool(await self._database.rows(sa.select(trials.c.id).where(*which).limit(1)))

    async def _read(self, which: sa.ColumnElement[bool]) -> list[Link]:
        query: sa.Select[Any] = _all.where(which).order_by(links.c.id.desc())
        return [Link(**row) for row in await self._database.rows(query)]
