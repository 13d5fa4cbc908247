"""A cache of job specs. A spec never changes, and a job id is never used twice.

With the cache, a page of jobs need not read the specs again, which are most of its bytes. Safe to use from any thread.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from seatrial.domain.job import JobSpec

_REMEMBERED = 1024
_SMALL = 16_000
"""Larger documents, in characters, are not cached."""


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
