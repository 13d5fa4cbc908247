"""The store of what people add while they look through results: notes, marks, names, pins, views and links."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from seatrial.domain.link import Link, NewLink
from seatrial.domain.triage import MarkKind, Neighbours, Note, SavedView, Triage, TriageLine, TriageMark, ViewPage


class TriageStore(Protocol):
    """``store.triage``. Deleting a job deletes everything that was added to it and to its trials."""

    async def add_note(self, trial_id: int, text: str, author: str, now: datetime) -> Note:
        """Raises ``Conflict`` if the trial has too many notes."""
        ...

    async def delete_note(self, trial_id: int, note_id: int) -> None: ...

    async def put_mark(self, mark: TriageMark) -> None:
        """Replaces the mark of the same kind and name. Raises ``Conflict`` if the trial has too many."""
        ...

    async def remove_mark(self, trial_id: int, kind: MarkKind, name: str = "") -> None:
        """Does nothing if the trial has no such mark."""
        ...

    async def of_trial(self, trial_id: int) -> Triage: ...

    async def of_job(self, job_id: int) -> list[TriageLine]:
        """Of the trials to which something was added, in order of id."""
        ...

    async def rename_job(self, job_id: int, name: str | None, author: str, now: datetime) -> None:
        """``None`` gives back the name that it was created with. The spec stays as it is."""
        ...

    async def pin_job(self, job_id: int, pinned: bool, author: str, now: datetime) -> None: ...

    async def neighbours(self, trial_id: int) -> Neighbours: ...

    async def save_view(self, page: ViewPage, name: str, query: str, author: str, now: datetime) -> SavedView:
        """Replaces the view of the same name. Raises ``Conflict`` if there are too many."""
        ...

    async def views(self) -> list[SavedView]:
        """By page and name."""
        ...

    async def delete_view(self, view_id: int) -> None: ...


class LinkStore(Protocol):
    """``store.links``. A deleted job or trial has no links."""

    async def save(self, link: NewLink, now: datetime) -> Link: ...

    async def find(self, fingerprint: str) -> Link | None:
        """By the whole fingerprint. ``revoked_at`` is set if the token that created it was revoked, and ``expires_at``
        is not later than that of the token."""
        ...

    async def all(self, job_id: int | None = None) -> list[Link]:
        """Newest first."""
        ...

    async def revoke(self, link_id: int, now: datetime) -> Link: ...

    async def job_of(self, trial_id: int) -> int | None:
        """The job of a trial; ``None`` if there is no such trial."""
        ...

    async def uses(self, job_id: int, trial_id: int | None, digest: str) -> bool:
        """Whether the trial, or one of the job's trials, attempts the task with this digest."""
        ...
