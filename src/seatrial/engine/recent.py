"""What was worked out last, and no more than fits: the one used longest ago is forgotten first.

For values that cannot change under their key. Used from one event loop alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from seatrial.domain.job import Job

_JOBS = 5000
"""Jobs that ``EndedJobs`` remembers; some two thousand bytes each."""


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
    """What was worked out about jobs that ended. One per process.

    An ended job cannot change before somebody retries it, and then its end is another one; the store's row tells,
    whichever process did that."""

    def __init__(self, limit: int = _JOBS) -> None:
        self._kept: RecentlyUsed[dict[Hashable, object]] = RecentlyUsed(limit)

    def get[Found](self, job: Job, kind: type[Found], *more: Hashable) -> Found | None:
        """``None`` for a job that is open. ``more`` tells several values of one kind apart."""
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
