"""Pagination. A cursor is valid only for the list that issued it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query

from seatrial.domain.numbers import LARGEST_COUNT, LARGEST_ID
from seatrial.domain.task import Task, TaskRef
from seatrial.errors import InvalidInput
from seatrial.ports.store import Page
from seatrial.shapes.answers import Plain

DEFAULT_LIMIT = 50
MOST = 500

Limit = Annotated[int, Query(ge=1, le=MOST, description="Maximum number of items.")]
Skip = Annotated[int, Query(ge=0, le=LARGEST_COUNT, description="Number of items to skip.")]
Cursor = Annotated[Plain | None, Query(description="`next` of the previous page.")]
JobId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="A job's number.")]
TrialId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="A trial's number.")]
Digest = Annotated[
    str, Path(pattern="^sha256:[0-9a-f]{64}$", description="A task's digest: `sha256:` and 64 hex digits.")
]


@dataclass(frozen=True)
class RequestedPage:
    """The requested page."""

    limit: int
    cursor: str | None

    @property
    def one_more(self) -> int:
        """One row more than fits shows whether there is a next page."""
        return self.limit + 1

    def by_id(self) -> Page:
        return Page(limit=self.one_more, before=self.number())

    def by_name(self) -> TaskRef | None:
        if self.cursor is None:
            return None
        try:
            name, _, digest = base64.urlsafe_b64decode(self.cursor.encode()).decode().rpartition("\n")
        except (ValueError, binascii.Error) as error:
            raise _foreign() from error
        if not digest or "\x00" in name + digest:
            raise _foreign()
        return TaskRef(name=name, digest=digest)

    def number(self) -> int | None:
        if self.cursor is None:
            return None
        if not (self.cursor.isascii() and self.cursor.isdecimal()) or not 0 < int(self.cursor[:20]) <= LARGEST_ID:
            raise _foreign()
        return int(self.cursor)


async def requested_page(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> RequestedPage:
    return RequestedPage(limit, cursor)


def cut[Row](rows: list[Row], limit: int) -> tuple[list[Row], Row | None]:
    """The rows that fit, and the last of them if there are more."""
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


def name_cursor(task: Task) -> str:
    return base64.urlsafe_b64encode(f"{task.name}\n{task.digest}".encode()).decode()


def _foreign() -> InvalidInput:
    return InvalidInput("This is not a cursor of this list.", field="cursor", fix="Use `next` of the previous page.")
