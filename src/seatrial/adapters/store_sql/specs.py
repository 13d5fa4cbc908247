"""A cache of job specs. A spec never changes, and a job id is never used twice.

With the cache, a page of jobs need not read the specs again, which are most of its bytes. Safe to use from any thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import batched
from threading import Lock

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.tables import jobs
from seatrial.domain.job import JobSpec
from seatrial.domain.model_calls.record import Record

_REMEMBERED = 1024
_SMALL = 16_000
"""Larger documents, in characters, are not cached."""


IDS_AT_ONCE = 5000
"""Both databases allow about 32,000 parameters in one statement."""
_by_id = sa.select(jobs.c.id, jobs.c.spec).where(jobs.c.id.in_(sa.bindparam("ids", expanding=True)))


def document_of(spec: JobSpec) -> str:
    """Without what is as usual: while a fleet is upgraded, workers of the version before read it, too. They cannot read
    a spec with a budget or a replay, and must not: they would not keep to it."""
    usual = {
        "budget": not spec.budget,
        "record": spec.record is Record.CALLS,
        "replay": spec.replay is None,
        "tell_limits": not spec.tell_limits,
    }
    return spec.model_dump_json(exclude={name for name, is_usual in usual.items() if is_usual})


class JobSpecs:
    def __init__(self) -> None:
        self._kept: OrderedDict[int, JobSpec] = OrderedDict()
        self._lock = Lock()

    def recall(self, job_id: int) -> JobSpec | None:
        with self._lock:
            spec = self._kept.get(job_id)
            if spec is not None:
                self._kept.move_to_end(job_id)
            return spec

    def learn(self, job_id: int, document: str) -> JobSpec:
        spec = JobSpec.model_validate_json(document)
        if len(document) <= _SMALL:
            with self._lock:
                self._kept[job_id] = spec
                if len(self._kept) > _REMEMBERED:
                    self._kept.popitem(last=False)
        return spec

    def read(self, connection: Connection, job_ids: Iterable[int]) -> dict[int, JobSpec]:
        """Cached specs, and the others from the database. A job that was deleted in the meantime has none."""
        found = {job_id: self.recall(job_id) for job_id in job_ids}
        for ids in batched([job_id for job_id, spec in found.items() if spec is None], IDS_AT_ONCE):
            for row in connection.execute(_by_id, {"ids": ids}):
                found[row.id] = self.learn(row.id, row.spec)
        return {job_id: spec for job_id, spec in found.items() if spec is not None}
