"""Use cases of triage: checks what people write, and stores it with their name and the time.

The API and the local backend of the command line use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.domain.link import Link, NewLink, fresh_link_secret, link_lifetime
from seatrial.domain.token import fingerprint
from seatrial.domain.triage import (
    LONGEST_TITLE,
    LONGEST_VALUE,
    LONGEST_WORD,
    MarkKind,
    Note,
    SavedView,
    TriageMark,
    ViewPage,
    checked_line,
    checked_note,
    checked_query,
    checked_word,
)
from seatrial.engine.clock import Clock
from seatrial.errors import NotFound
from seatrial.ports.store import Store


@dataclass(frozen=True)
class Author:
    """Who adds something."""

    name: str
    token_id: int | None = None


@dataclass(frozen=True)
class TriageActions:
    """What one author can do with jobs and trials."""

    store: Store
    clock: Clock
    author: Author

    async def note(self, trial_id: int, text: str) -> Note:
        return await self.store.triage.add_note(trial_id, checked_note(text), self.author.name, self.clock())

    async def tag(self, trial_id: int, name: str) -> None:
        await self._mark(trial_id, MarkKind.TAG, checked_word(name, "tag"))

    async def label(self, trial_id: int, name: str, value: str) -> None:
        word, text = checked_word(name, "label"), checked_line(value, "value", LONGEST_VALUE)
        await self._mark(trial_id, MarkKind.LABEL, word, text)

    async def review(self, trial_id: int, reviewed: bool) -> None:
        if reviewed:
            await self._mark(trial_id, MarkKind.REVIEWED)
        else:
            await self.store.triage.remove_mark(trial_id, MarkKind.REVIEWED)

    async def rename(self, job_id: int, name: str | None) -> None:
        """``None`` or an empty name restores the first one."""
        title = checked_line(name, "name", LONGEST_TITLE) if name and name.strip() else None
        await self.store.triage.rename_job(job_id, title, self.author.name, self.clock())

    async def pin(self, job_id: int, pinned: bool) -> None:
        await self.store.triage.pin_job(job_id, pinned, self.author.name, self.clock())

    async def save_view(self, page: ViewPage, name: str, query: str) -> SavedView:
        title = checked_line(name, "name", LONGEST_WORD)
        return await self.store.triage.save_view(page, title, checked_query(query), self.author.name, self.clock())

    async def share_job(self, job_id: int, expires: str) -> tuple[str, Link]:
        """The secret of a new read-only link, and the link."""
        await self.store.jobs.get(job_id)  # raises for an unknown job
        return await self._share(job_id, None, expires)

    async def share_trial(self, trial_id: int, expires: str) -> tuple[str, Link]:
        job_id = await self.store.links.job_of(trial_id)
        if job_id is None:
            raise NotFound(f"There is no trial {trial_id}.")
        return await self._share(job_id, trial_id, expires)

    async def _share(self, job_id: int, trial_id: int | None, expires: str) -> tuple[str, Link]:
        now, secret = self.clock(), fresh_link_secret()
        link = NewLink(
            fingerprint=fingerprint(secret),
            job_id=job_id,
            trial_id=trial_id,
            author=self.author.name,
            token_id=self.author.token_id,
            expires_at=now + link_lifetime(expires),
        )
        return secret, await self.store.links.save(link, now)

    async def _mark(self, trial_id: int, kind: MarkKind, name: str = "", value: str = "") -> None:
        mark = TriageMark(
            trial_id=trial_id, kind=kind, name=name, value=value, author=self.author.name, at=self.clock()
        )
        await self.store.triage.put_mark(mark)
