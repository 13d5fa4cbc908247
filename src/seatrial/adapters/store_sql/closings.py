"""Ends tries. Those of one process that end together share a transaction.

Ending a try takes eight round trips to PostgreSQL, and the lock of the event log until the commit is on disk. A worker
with forty trials would wait forty times for the disk. Here one group is written at a time; whatever ends meanwhile is
the next group. A try that ends alone does not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.change import Closing, close_tries
from seatrial.adapters.store_sql.database import Database
from seatrial.domain.trial import Trial
from seatrial.errors import StoreUnavailable

_LARGEST_GROUP = 100


@dataclass(frozen=True, slots=True)
class _Waiting:
    closing: Closing
    closed: asyncio.Future[Trial]

    def settle(self, found: Trial | Exception) -> None:
        if self.closed.done():  # its caller was cancelled
            return
        if isinstance(found, Exception):
            self.closed.set_exception(found)
        else:
            self.closed.set_result(found)


class Closings:
    """Used from one event loop, unless the database groups its writes itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def close(self, closing: Closing) -> Trial:
        if self._database.groups_writes:
            return _trial(*await self._closed([closing]))
        waiting = _Waiting(closing, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await waiting.closed

    async def _write_all(self) -> None:
        try:
            while group := self._next_group():
                await self._write(group)
        finally:
            self._writing = None

    def _next_group(self) -> list[_Waiting]:
        """One closing of each trial: the next one must see what this one did."""
        group: dict[int, _Waiting] = {}
        later: list[_Waiting] = []
        for one in self._waiting:
            if one.closed.done():
                continue
            fits = len(group) < _LARGEST_GROUP and one.closing.trial_id not in group
            if fits:
                group[one.closing.trial_id] = one
            else:
                later.append(one)
        self._waiting = later
        return list(group.values())

    async def _write(self, group: list[_Waiting]) -> None:
        try:
            found = await self._closed([one.closing for one in group])
        except StoreUnavailable as fault:
            found = [fault] * len(group)
        except Exception as fault:
            if len(group) > 1:  # what one of them cannot write must not keep the others from it
                for one in group:
                    await self._write([one])
                return
            found = [fault]
        except BaseException:
            for one in group:
                one.closed.cancel()
            raise
        for one, each in zip(group, found, strict=True):
            one.settle(each)

    async def _closed(self, closings: Sequence[Closing]) -> Sequence[Trial | Exception]:
        def operation(connection: Connection) -> Sequence[Trial | Exception]:
            return close_tries(connection, closings)

        return await self._database.write(operation)


def _trial(found: Trial | Exception) -> Trial:
    if isinstance(found, Exception):
        raise found
    return found
