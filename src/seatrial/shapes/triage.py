"""Notes, marks, saved views, read-only links and search results. Only ``LinkMade`` contains a secret."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.link import Link
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.triage import (
    LONGEST_NOTE,
    LONGEST_QUERY,
    LONGEST_TITLE,
    LONGEST_VALUE,
    LONGEST_WORD,
    MarkKind,
    Note,
    SavedView,
    Triage,
    TriageLine,
    TriageMark,
    ViewPage,
)
from seatrial.shapes.answers import Listing

_PLAIN = r"^[^\x00]*$"


class NoteRequest(Frozen):
    text: str = Field(min_length=1, max_length=LONGEST_NOTE, pattern=_PLAIN)


class LabelRequest(Frozen):
    value: str = Field(min_length=1, max_length=LONGEST_VALUE, pattern=_PLAIN)


class JobChange(Frozen):
    """Fields that are missing stay as they are."""

    name: str | None = Field(default=None, max_length=LONGEST_TITLE, pattern=_PLAIN)
    """A new name. An empty one restores the first name."""
    pinned: bool | None = None


class ViewRequest(Frozen):
    page: ViewPage
    name: str = Field(min_length=1, max_length=LONGEST_WORD, pattern=_PLAIN)
    query: str = Field(max_length=LONGEST_QUERY, pattern=_PLAIN)
    """What follows the `?` in the page's address."""


class LinkRequest(Frozen):
    """Exactly one of `job` and `trial`."""

    job: int | None = Field(default=None, ge=1, le=LARGEST_ID)
    trial: int | None = Field(default=None, ge=1, le=LARGEST_ID)
    expires: str = Field(default="7d", max_length=20)
    """Lifetime: ``7d``, ``12h``, at most ``90d``."""


class LinkItem(BaseModel):
    id: int
    job_id: int
    trial_id: int | None
    """Only this trial; null: the whole job."""
    author: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    valid: bool

    @classmethod
    def of(cls, link: Link, now: datetime, **more: str) -> LinkItem:
        values = link.model_dump(exclude={"fingerprint", "token_id"})
        return cls(**values, valid=link.is_valid(now), **more)


class LinkMade(LinkItem):
    secret: str
    """Shown only in this answer. Send it as `Authorization: Bearer`."""
    path: str
    """The address on the page. The secret is its fragment, which browsers send to no server."""


class LinkPage(Listing[LinkItem]):
    """All read-only links, newest first."""


class Opened(BaseModel):
    """What a read-only link shows."""

    job_id: int
    trial_id: int | None
    expires_at: datetime


class MarkItem(BaseModel):
    name: str
    value: str
    author: str
    at: datetime

    @classmethod
    def of(cls, mark: TriageMark) -> MarkItem:
        return cls(name=mark.name, value=mark.value, author=mark.author, at=mark.at)


class TrialTriage(BaseModel):
    """Everything that people added to a trial. It changes no number."""

    trial_id: int
    tags: list[MarkItem]
    labels: list[MarkItem]
    reviewed: MarkItem | None
    notes: list[Note]

    @classmethod
    def of(cls, triage: Triage) -> TrialTriage:
        return cls(
            trial_id=triage.trial_id,
            tags=[MarkItem.of(mark) for mark in triage.of(MarkKind.TAG)],
            labels=[MarkItem.of(mark) for mark in triage.of(MarkKind.LABEL)],
            reviewed=next((MarkItem.of(mark) for mark in triage.of(MarkKind.REVIEWED)), None),
            notes=list(triage.notes),
        )


class JobTriage(BaseModel):
    """What people added to the trials of a job, in short. Trials without anything are left out."""

    items: list[TriageLine]


class ViewList(BaseModel):
    """All saved views, by page and name."""

    items: list[SavedView]
