"""What people add to trials and jobs, and read-only links, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime

from seatrial.domain.link import Link, NewLink
from seatrial.domain.token import Token
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
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryTriage:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._views: dict[tuple[ViewPage, str], SavedView] = {}
        self._last_note = 0
        self._last_view = 0

    async def add_note(self, trial_id: int, text: str, author: str, now: datetime) -> Note:
        if len((await self.of_trial(trial_id)).notes) >= MOST_NOTES:
            raise Conflict(f"Trial {trial_id} has {MOST_NOTES} notes.")
        self._last_note += 1
        note = Note(id=self._last_note, trial_id=trial_id, text=text, author=author, at=now)
        self._records.notes[note.id] = note
        return note

    async def delete_note(self, trial_id: int, note_id: int) -> None:
        note = self._records.notes.get(note_id)
        if note is None or note.trial_id != trial_id:
            raise NotFound(f"Trial {trial_id} has no note {note_id}.")
        del self._records.notes[note_id]

    async def put_mark(self, mark: TriageMark) -> None:
        key = (mark.trial_id, mark.kind, mark.name)
        if len((await self.of_trial(mark.trial_id)).marks) >= MOST_MARKS and key not in self._records.marks:
            raise Conflict(f"Trial {mark.trial_id} has {MOST_MARKS} tags and labels.")
        self._records.marks[key] = mark

    async def remove_mark(self, trial_id: int, kind: MarkKind, name: str = "") -> None:
        self._records.trial(trial_id)
        self._records.marks.pop((trial_id, kind, name), None)

    async def of_trial(self, trial_id: int) -> Triage:
        self._records.trial(trial_id)
        marks = sorted((mark for mark in self._records.marks.values() if mark.trial_id == trial_id), key=_order)
        notes = (note for note in self._records.notes.values() if note.trial_id == trial_id)
        return Triage(trial_id=trial_id, marks=tuple(marks), notes=tuple(notes))

    async def of_job(self, job_id: int) -> list[TriageLine]:
        found = [await self.of_trial(trial.id) for trial in self._records.of_job(job_id)]
        return [_line(triage) for triage in found if triage.marks or triage.notes]

    async def rename_job(self, job_id: int, name: str | None, author: str, now: datetime) -> None:
        self._change_job(job_id, renamed=name)

    async def pin_job(self, job_id: int, pinned: bool, author: str, now: datetime) -> None:
        self._change_job(job_id, pinned_at=now if pinned else None)

    async def neighbours(self, trial_id: int) -> Neighbours:
        ids = sorted(trial.id for trial in self._records.of_job(self._records.trial(trial_id).job_id))
        place = ids.index(trial_id)
        return Neighbours(
            previous=ids[place - 1] if place else None,
            next=ids[place + 1] if place + 1 < len(ids) else None,
            place=place + 1,
            total=len(ids),
        )

    async def save_view(self, page: ViewPage, name: str, query: str, author: str, now: datetime) -> SavedView:
        known = self._views.get((page, name))
        if known is None and len(self._views) >= MOST_VIEWS:
            raise Conflict(f"There are {MOST_VIEWS} saved views.")
        self._last_view += known is None
        number = known.id if known else self._last_view
        self._views[page, name] = SavedView(id=number, page=page, name=name, query=query, author=author, at=now)
        return self._views[page, name]

    async def views(self) -> list[SavedView]:
        return [self._views[key] for key in sorted(self._views)]

    async def delete_view(self, view_id: int) -> None:
        if view_id not in {view.id for view in self._views.values()}:
            raise NotFound(f"There is no saved view {view_id}.")
        self._views = {key: view for key, view in self._views.items() if view.id != view_id}

    def _change_job(self, job_id: int, **values: object) -> None:
        if job_id not in self._records.jobs:
            raise NotFound(f"There is no job {job_id}.")
        self._records.jobs[job_id] = self._records.jobs[job_id].model_copy(update=values)


class MemoryLinks:
    def __init__(self, records: MemoryRecords, tokens: Callable[[], Awaitable[list[Token]]]) -> None:
        self._records = records
        self._tokens = tokens
        self._last = 0

    async def save(self, link: NewLink, now: datetime) -> Link:
        self._last += 1
        self._records.links[self._last] = saved = Link(id=self._last, created_at=now, **link.model_dump())
        return saved

    async def find(self, fingerprint: str) -> Link | None:
        return next((link for link in await self.all() if link.fingerprint == fingerprint), None)

    async def all(self, job_id: int | None = None) -> list[Link]:
        tokens = {token.id: token for token in await self._tokens()}
        links = reversed(self._records.links.values())
        return [_as_token(link, tokens.get(link.token_id or 0)) for link in links if job_id in (None, link.job_id)]

    async def revoke(self, link_id: int, now: datetime) -> Link:
        link = self._records.links.get(link_id)
        if link is None:
            raise NotFound(f"There is no link {link_id}.")
        self._records.links[link_id] = link.model_copy(update={"revoked_at": link.revoked_at or now})
        return next(each for each in await self.all() if each.id == link_id)

    async def job_of(self, trial_id: int) -> int | None:
        trial = self._records.trials.get(trial_id)
        return trial.job_id if trial else None

    async def uses(self, job_id: int, trial_id: int | None, digest: str) -> bool:
        trials = (trial for trial in self._records.of_job(job_id) if trial_id in (None, trial.id))
        return any(trial.task.digest == digest for trial in trials)


def _as_token(link: Link, token: Token | None) -> Link:
    if token is None:
        return link
    ends = min(link.expires_at, token.expires_at or link.expires_at)
    return link.model_copy(update={"revoked_at": link.revoked_at or token.revoked_at, "expires_at": ends})


def _order(mark: TriageMark) -> tuple[str, str]:
    return mark.kind.value, mark.name


def _line(triage: Triage) -> TriageLine:
    counted = Counter(mark.kind for mark in triage.marks)
    return TriageLine(
        trial_id=triage.trial_id,
        tags=tuple(mark.name for mark in triage.of(MarkKind.TAG)),
        labels={mark.name: mark.value for mark in triage.of(MarkKind.LABEL)},
        reviewed=counted[MarkKind.REVIEWED] > 0,
        notes=len(triage.notes),
    )
