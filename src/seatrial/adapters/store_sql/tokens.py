"""Tokens, by their fingerprint, and the installation's sealed provider keys."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import provider_keys, tokens
from seatrial.domain.token import NewToken, Token
from seatrial.errors import NotFound
from seatrial.ports.store import ProviderKey


class SqlAccess:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save_token(self, token: NewToken, now: datetime) -> Token:
        insert = sa.insert(tokens).values(created_at=now, **token.model_dump()).returning(*tokens.c)
        row = await self._database.write(lambda connection: connection.execute(insert).mappings().one())
        return Token(**row)

    async def token(self, fingerprint: str) -> Token | None:
        query = sa.select(tokens).where(tokens.c.fingerprint == fingerprint)
        return next((Token(**row) for row in await self._database.rows(query)), None)

    async def tokens(self) -> list[Token]:
        query = sa.select(tokens).order_by(tokens.c.id.desc())
        return [Token(**row) for row in await self._database.rows(query)]

    async def revoke_token(self, token_id: int, now: datetime) -> Token:
        revoked = sa.func.coalesce(tokens.c.revoked_at, now, type_=tokens.c.revoked_at.type)
        update = sa.update(tokens).where(tokens.c.id == token_id).values(revoked_at=revoked).returning(*tokens.c)
        row = await self._database.write(lambda connection: connection.execute(update).mappings().first())
        if row is None:
            raise NotFound(f"There is no token {token_id}.")
        return Token(**row)

    async def note_token_use(self, token_id: int, now: datetime) -> None:
        update = sa.update(tokens).where(tokens.c.id == token_id).values(used_at=now)
        await self._database.change(update, durable=False)

    async def save_provider_key(self, name: str, sealed: str, now: datetime) -> None:
        values = {"sealed": sealed, "set_at": now}

        def operation(connection: Connection) -> None:
            known = sa.update(provider_keys).where(provider_keys.c.name == name).values(values)
            if connection.execute(known).rowcount == 0:
                connection.execute(sa.insert(provider_keys).values(name=name, **values))

        await self._database.write(operation)

    async def provider_keys(self) -> list[ProviderKey]:
        query = sa.select(provider_keys).order_by(provider_keys.c.name)
        return [ProviderKey(**row) for row in await self._database.rows(query)]

    async def delete_provider_key(self, name: str) -> None:
        gone = sa.delete(provider_keys).where(provider_keys.c.name == name)
        if not await self._database.change(gone):
            raise NotFound(f"There is no provider key {name}.")
