"""Triage for commands: on this machine's installation, and on a remote service."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from seatrial.client import AsyncClient
from seatrial.domain.triage import MarkKind
from seatrial.engine.triage import Author, TriageActions
from seatrial.shapes.triage import LinkItem, LinkMade, TrialTriage
from seatrial.wiring import Installation


class TriageBackend(Protocol):
    async def get(self, trial_id: int) -> TrialTriage: ...

    async def note(self, trial_id: int, text: str) -> None: ...

    async def tag(self, trial_id: int, name: str) -> None: ...

    async def untag(self, trial_id: int, name: str) -> None: ...

    async def label(self, trial_id: int, name: str, value: str) -> None: ...

    async def unlabel(self, trial_id: int, name: str) -> None: ...

    async def review(self, trial_id: int, reviewed: bool) -> None: ...

    async def rename(self, job_id: int, name: str) -> None: ...

    async def pin(self, job_id: int, pinned: bool) -> None: ...

    async def share(self, job_id: int | None, trial_id: int | None, expires: str) -> LinkMade: ...

    async def links(self, job_id: int | None) -> Sequence[LinkItem]: ...

    async def revoke(self, link_id: int) -> LinkItem: ...

    @property
    def address(self) -> str:
        """Where the page is."""
        ...


@dataclass(frozen=True)
class LocalTriage:
    actions: TriageActions
    address: str

    @classmethod
    def at(cls, here: Installation) -> Self:
        settings = here.settings
        return cls(TriageActions(here.store, here.clock, Author(_account())), f"http://{settings.host}:{settings.port}")

    async def get(self, trial_id: int) -> TrialTriage:
        return TrialTriage.of(await self.actions.store.triage.of_trial(trial_id))

    async def note(self, trial_id: int, text: str) -> None:
        await self.actions.note(trial_id, text)

    async def tag(self, trial_id: int, name: str) -> None:
        await self.actions.tag(trial_id, name)

    async def untag(self, trial_id: int, name: str) -> None:
        await self.actions.store.triage.remove_mark(trial_id, MarkKind.TAG, name)

    async def label(self, trial_id: int, name: str, value: str) -> None:
        await self.actions.label(trial_id, name, value)

    async def unlabel(self, trial_id: int, name: str) -> None:
        await self.actions.store.triage.remove_mark(trial_id, MarkKind.LABEL, name)

    async def review(self, trial_id: int, reviewed: bool) -> None:
        await self.actions.review(trial_id, reviewed)

    async def rename(self, job_id: int, name: str) -> None:
        await self.actions.rename(job_id, name)

    async def pin(self, job_id: int, pinned: bool) -> None:
        await self.actions.pin(job_id, pinned)

    async def share(self, job_id: int | None, trial_id: int | None, expires: str) -> LinkMade:
        actions = self.actions
        secret, link = await (
            actions.share_job(job_id, expires) if job_id is not None else actions.share_trial(trial_id or 0, expires)
        )
        item = LinkItem.of(link, actions.clock())
        return LinkMade(**item.model_dump(), secret=secret, path=f"/shared#{secret}")

    async def links(self, job_id: int | None) -> Sequence[LinkItem]:
        now = self.actions.clock()
        return [LinkItem.of(link, now) for link in await self.actions.store.links.all(job_id)]

    async def revoke(self, link_id: int) -> LinkItem:
        now = self.actions.clock()
        return LinkItem.of(await self.actions.store.links.revoke(link_id, now), now)


@dataclass(frozen=True)
class RemoteTriage:
    client: AsyncClient

    @property
    def address(self) -> str:
        return self.client.url.rstrip("/")

    async def get(self, trial_id: int) -> TrialTriage:
        return await self.client.triage.get(trial_id)

    async def note(self, trial_id: int, text: str) -> None:
        await self.client.triage.note(trial_id, text)

    async def tag(self, trial_id: int, name: str) -> None:
        await self.client.triage.tag(trial_id, name)

    async def untag(self, trial_id: int, name: str) -> None:
        await self.client.triage.untag(trial_id, name)

    async def label(self, trial_id: int, name: str, value: str) -> None:
        await self.client.triage.label(trial_id, name, value)

    async def unlabel(self, trial_id: int, name: str) -> None:
        await self.client.triage.unlabel(trial_id, name)

    async def review(self, trial_id: int, reviewed: bool) -> None:
        await self.client.triage.review(trial_id, reviewed)

    async def rename(self, job_id: int, name: str) -> None:
        await self.client.triage.change_job(job_id, name=name)

    async def pin(self, job_id: int, pinned: bool) -> None:
        await self.client.triage.change_job(job_id, pinned=pinned)

    async def share(self, job_id: int | None, trial_id: int | None, expires: str) -> LinkMade:
        return await self.client.links.create(job=job_id, trial=trial_id, expires=expires)

    async def links(self, job_id: int | None) -> Sequence[LinkItem]:
        return await self.client.links.list(job_id)

    async def revoke(self, link_id: int) -> LinkItem:
        return await self.client.links.revoke(link_id)


def _account() -> str:
    """The name of this process's account. A container may run without an entry for it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
