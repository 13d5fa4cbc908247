"""Provider keys: where they come from, who gets them, and how they rest.

A key comes from the environment of the process, from the installation's store (an admin entered it), or with one job.
Stored ones are sealed; those of a job are gone when it ends. A trial gets only what its job's models need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.admission import Admission, calls_from_inside
from seatrial.errors import InvalidInput, MissingKey, SetupProblem
from seatrial.ports.seal import Seal
from seatrial.ports.store import JobStore, KeyStore, WorkerStore

_NAME = re.compile(r"(?!SEATRIAL_)(?=.*_(?:API_KEY|TOKEN)(?:_|$))[A-Z][A-Z0-9_]{1,63}")
_VALUE = re.compile(r"[\x21-\x7e]+")
_LONGEST = 4096


def check_key(name: str, value: str) -> None:
    """Refuses what is no provider key, before it gets anywhere. The error never repeats the value."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "That is no name of a provider key.", field="name", fix="Use one such as OPENROUTER_API_KEY or HF_TOKEN."
        )
    if not value:
        raise InvalidInput(f"The key {name} is empty.", field=name, fix="Send the key, or leave it out.")
    if len(value) > _LONGEST:
        raise InvalidInput(f"The key {name} is longer than {_LONGEST} characters.", field=name)
    if not _VALUE.fullmatch(value):
        raise InvalidInput(f"The key {name} has characters that no key has.", field=name)


@dataclass(frozen=True, slots=True)
class TrialKeys:
    """Keys of one attempt, by environment name."""

    values: Mapping[str, str] = field(repr=False)
    are_the_jobs: bool = True
    """Whether all of them came with the job, and none is the installation's."""


class WorkerSeals:
    """Whether workers can open what this process seals: each tells a fingerprint of its secret key."""

    def __init__(
        self,
        workers: WorkerStore,
        seal: Seal,
        clock: Clock,
        heard_within: timedelta,
        worker_is_dead: Callable[[str], bool],
    ) -> None:
        self._workers = workers
        self._seal = seal
        self._clock = clock
        self._heard_within = heard_within
        self._worker_is_dead = worker_is_dead

    async def check(self) -> None:
        """Refuses keys that no worker could open. Without any worker nothing is known, so nothing is refused."""
        rows = await self._workers.workers(seen_since=self._clock() - self._heard_within)
        there = [row for row in rows if row.seal and not self._worker_is_dead(row.worker)]
        if there and all(row.seal != self._seal.fingerprint() for row in there):
            hosts = ", ".join(sorted({row.host for row in there}))
            raise SetupProblem(
                f"No worker can open the keys of this job: the workers on {hosts} have another secret key.",
                fix="Set the same SEATRIAL_SECRET_KEY for the service and all of its workers, and restart them.",
            )


class KeyRing:
    def __init__(
        self,
        store: KeyStore,
        jobs: JobStore,
        seal: Seal,
        from_environment: Mapping[str, str],
        keys_for: Callable[[str], tuple[str, ...]],
        admission: Admission | None = None,
        workers: WorkerSeals | None = None,
    ) -> None:
        """``admission`` says for which agents the installation's keys may be used."""
        self._admission = admission or Admission()
        self._store = store
        self._jobs = jobs
        self._seal = seal
        self._from_environment = from_environment
        self._keys_for = keys_for
        self._workers = workers

    def sealed(self, keys: Mapping[str, str]) -> str | None:
        """What the store may hold of a job's keys; ``None`` when there is none."""
        return self._seal.close(json.dumps(dict(keys))) if keys else None

    async def keep(self, name: str, value: str, now: datetime) -> None:
        """Adds a key to the installation's own, or replaces it."""
        check_key(name, value)
        await self._store.save_provider_key(name, self._seal.close(value), now)

    async def names(self) -> frozenset[str]:
        """Keys that the installation has of its own."""
        stored = {key.name for key in await self._store.provider_keys()}
        return frozenset(self._from_environment) | stored

    async def names_of_job(self, job_id: int) -> frozenset[str]:
        """Keys that came with a job and are still kept, since it has not ended."""
        sealed = await self._jobs.job_keys(job_id)
        return frozenset(json.loads(self._seal.open(sealed))) if sealed else frozenset()

    async def require(self, spec: JobSpec, given: Collection[str]) -> None:
        """A missing key is one sentence now, instead of an error of every trial later. So is one that no worker can
        open."""
        if given and self._workers is not None:
            await self._workers.check()
        ours = await self.names()
        for agent in spec.agents:
            there = set(given) | (ours if self._admission.may_use_own_keys(spec, agent) else set())
            wanted = self._keys_for(agent.model) if agent.model is not None else ()
            has_one = bool(there.intersection(wanted) or set(agent.env).intersection(wanted))
            if wanted and not has_one and "api_base" not in agent.options:
                if spec.own_keys and calls_from_inside(agent) and ours.intersection(wanted):
                    raise _ours_stays_outside(agent, wanted[0])
                raise MissingKey(
                    f"Model {agent.model} needs a key and none is set.",
                    field="model",
                    fix=f"Set {' or '.join(wanted)}.",
                )

    async def for_agent(self, job: Job, agent: AgentSpec) -> TrialKeys:
        """What one agent of a job gets: the job's own keys first, the installation's only where it may use them."""
        wanted = self._keys_for(agent.model) if agent.model else ()
        if not wanted:
            return TrialKeys({})
        sealed = await self._jobs.job_keys(job.id)
        given = json.loads(self._seal.open(sealed)) if sealed else {}
        own = await self._own(set(wanted) - set(given)) if self._admission.may_use_own_keys(job.spec, agent) else {}
        found = {name: value for name, value in {**own, **given}.items() if name in wanted}
        return TrialKeys(found, are_the_jobs=set(found) <= set(given))

    async def _own(self, wanted: Collection[str]) -> dict[str, str]:
        """Only what is needed is opened: a key that another secret key sealed stops nobody else."""
        there = {name: value for name, value in self._from_environment.items() if name in wanted}
        missing = set(wanted) - set(there)
        stored = [key for key in await self._store.provider_keys() if key.name in missing]
        return {**{key.name: self._seal.open(key.sealed) for key in stored}, **there}


def _ours_stays_outside(agent: AgentSpec, name: str) -> MissingKey:
    return MissingKey(
        f"Agent {agent.name} would need this installation's key for {agent.model} inside of its sandbox.",
        field="model",
        fix=f"Send a key of your own with the job, X-Provider-Key: {name}=…, or choose an agent that calls its model "
        "from outside, such as terminus-2. The operator can allow it with SEATRIAL_ALLOW_KEYS_IN_SANDBOX.",
    )
