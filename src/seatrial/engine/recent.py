"""Caches with a limited size. The least recently used entry is removed first.

For values that never change for their key. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from seatrial.domain.job import Job

_JOBS = 5000
"""Default number of cached jobs, about 2 kB each."""


class RecentlyUsed[Found]:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, Found] = OrderedDict()

    def get(self, key: Hashable) -> Found | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: Hashable, found: Found) -> None:
        self._kept[key] = found
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)


class EndedJobs:
    """Caches what was computed about ended jobs. One per process.

    An ended job changes only if it is retried, in any process. It then gets another end time, which is part of the key.
    """

    def __init__(self, limit: int = _JOBS) -> None:
        self._kept: RecentlyUsed[dict[Hashable, object]] = RecentlyUsed(limit)

    def get[Found](self, job: Job, kind: type[Found], *more: Hashable) -> Found | None:
        """``None`` for a job that has not ended. ``more`` distinguishes several values of one kind."""
        if job.ended_at is None or (known := self._kept.get((job.id, job.ended_at))) is None:
            return None
        found = known.get((kind, *more))
        return found if isinstance(found, kind) else None

    def put(self, job: Job, found: object, *more: Hashable) -> None:
        if job.ended_at is None:
            return
        known = self._kept.get((job.id, job.ended_at)) or {}
        known[type(found), *more] = found
        self._kept.put((job.id, job.ended_at), known)
