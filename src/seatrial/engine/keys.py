"""Provider keys: where they come from, who gets them, and how they rest.

A key comes from the environment of the process, from the installation's store (an admin entered it), or with one job.
Stored ones are sealed; those of a job are gone when it ends. A trial gets only what its job's models need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from seatrial.domain.job import Job
from seatrial.ports.seal import Seal
from seatrial.ports.store import JobStore, KeyStore


class KeyRing:
    def __init__(
        self,
        store: KeyStore,
        jobs: JobStore,
        seal: Seal,
        from_environment: Callable[[], Mapping[str, str]],
        keys_for: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._seal = seal
        self._from_environment = from_environment
        self._keys_for = keys_for

    def sealed(self, keys: Mapping[str, str]) -> str | None:
        """What the store may hold of a job's keys; ``None`` when there is none."""
        return self._seal.close(json.dumps(dict(keys))) if keys else None

    async def names(self) -> frozenset[str]:
        """Keys that the installation has of its own."""
        stored = {key.name for key in await self._store.provider_keys()}
        return frozenset(self._from_environment()) | stored

    async def for_job(self, job: Job) -> Mapping[str, str]:
        """The job's own keys first; the installation's only where the job may use them."""
        wanted = {name for agent in job.spec.agents if agent.model for name in self._keys_for(agent.model)}
        if not wanted:
            return {}
        sealed = await self._jobs.job_keys(job.id)
        given = json.loads(self._seal.open(sealed)) if sealed else {}
        own = await self._own() if job.spec.own_keys else {}
        return {name: value for name, value in {**own, **given}.items() if name in wanted}

    async def _own(self) -> dict[str, str]:
        stored = {key.name: self._seal.open(key.sealed) for key in await self._store.provider_keys()}
        return {**stored, **self._from_environment()}
