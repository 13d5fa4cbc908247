"""Provider keys: where they come from, who gets them, and how they are stored.

A key comes from the environment of the process, from the store (an admin entered it), or with one job. Stored keys are
encrypted. The keys of a job are deleted when it ends. A trial gets only the keys that its models need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.admission import Admission, needs_key_inside
from seatrial.errors import InvalidInput, MissingKey, SetupProblem
from seatrial.ports.seal import Seal
from seatrial.ports.store import JobStore, KeyStore, WorkerStore

_NAME = re.compile(r"(?!SEATRIAL_)(?=.*_(?:API_KEY|TOKEN)(?:_|$))[A-Z][A-Z0-9_]{1,63}")
_VALUE = re.compile(r"[\x21-\x7e]+")
_LONGEST = 4096


def check_key(name: str, value: str) -> None:
    """Refuses an invalid name or value. The error never contains the value."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "This is not the name of a provider key.",
            field="name",
            fix="Use one such as OPENROUTER_API_KEY or HF_TOKEN.",
        )
    if not value:
        raise InvalidInput(f"The key {name} is empty.", field=name, fix="Send the key, or leave it out.")
    if len(value) > _LONGEST:
        raise InvalidInput(f"The key {name} is longer than {_LONGEST} characters.", field=name)
    if not _VALUE.fullmatch(value):
        raise InvalidInput(f"The key {name} has characters that no key has.", field=name)


@dataclass(frozen=True, slots=True)
class TrialKeys:
    """The keys of one try, by the names of their environment variables."""

    values: Mapping[str, str] = field(repr=False)
    are_the_jobs: bool = True
    """Whether all of them came with the job, and none belongs to the installation."""
    may_enter: bool = True
    """Whether they may go into a sandbox that cannot reach the gate."""


@dataclass(frozen=True)
class WorkerSeals:
    """Checks whether workers can open what this process seals, by the fingerprints of their secret keys."""

    workers: WorkerStore
    seal: Seal
    clock: Clock
    heard_within: timedelta
    worker_is_dead: Callable[[str], bool]

    async def check(self) -> None:
        """Raises if no worker can open the keys. Does nothing while there is no worker."""
        rows = await self.workers.all(seen_since=self.clock() - self.heard_within)
        there = [row for row in rows if row.seal and not self.worker_is_dead(row.worker)]
        if there and all(row.seal != self.seal.fingerprint() for row in there):
            hosts = ", ".join(sorted({row.host for row in there}))
            raise SetupProblem(
                f"No worker can open the keys of this job: the workers on {hosts} have another secret key.",
                fix="Set the same SEATRIAL_SECRET_KEY for the service and all of its workers, and restart them.",
            )


@dataclass(frozen=True)
class KeyRing:
    stored: KeyStore
    jobs: JobStore
    seal: Seal
    from_environment: Mapping[str, str]
    keys_for: Callable[[str], tuple[str, ...]]
    admission: Admission = field(default_factory=Admission)
    """Decides which agents may use the keys of the installation."""
    workers: WorkerSeals | None = None

    def sealed(self, keys: Mapping[str, str]) -> str | None:
        """The encrypted keys of a job; ``None`` if there are none."""
        return self.seal.close(json.dumps(dict(keys))) if keys else None

    async def save(self, name: str, value: str, now: datetime) -> None:
        """Stores a key of the installation, or replaces it."""
        check_key(name, value)
        await self.stored.save(name, self.seal.close(value), now)

    async def names(self) -> frozenset[str]:
        """The names of the installation's keys."""
        stored = {key.name for key in await self.stored.all()}
        return frozenset(self.from_environment) | stored

    async def names_of_job(self, job_id: int) -> frozenset[str]:
        """The names of the keys that came with a job. Empty after the job has ended."""
        return frozenset(await self._of_job(job_id))

    async def require(self, spec: JobSpec, given: Collection[str]) -> None:
        """Refuses a job if a key is missing or no worker can open it. Otherwise every trial would fail later."""
        if not spec.calls_providers:
            return
        if given and self.workers is not None:
            await self.workers.check()
        ours = await self.names()
        for agent in spec.agents:
            there = set(given) | (ours if self.admission.may_use_own_keys(spec, agent) else set())
            wanted = self.keys_for(agent.model) if agent.model is not None else ()
            has_one = bool(there.intersection(wanted) or set(agent.env).intersection(wanted))
            if wanted and not has_one and "api_base" not in agent.options:
                if spec.own_keys and needs_key_inside(spec, agent) and ours.intersection(wanted):
                    raise _ours_stays_outside(agent, wanted[0])
                raise MissingKey(
                    f"Model {agent.model} needs a key and none is set.",
                    field="model",
                    fix=f"Set {' or '.join(wanted)}.",
                )

    async def for_agent(self, job: Job, agent: AgentSpec) -> TrialKeys:
        """The keys of one agent. Keys of the job come first; those of the installation only if admission allows it."""
        wanted = self.keys_for(agent.model) if agent.model else ()
        if not wanted or not job.spec.calls_providers:
            return TrialKeys({})
        given = await self._of_job(job.id)
        own = await self._own(set(wanted) - set(given)) if self.admission.may_use_own_keys(job.spec, agent) else {}
        found = {name: value for name, value in {**own, **given}.items() if name in wanted}
        theirs = set(found) <= set(given)
        return TrialKeys(found, are_the_jobs=theirs, may_enter=theirs or self.admission.own_keys_may_enter(job.spec))

    async def _of_job(self, job_id: int) -> dict[str, str]:
        sealed = await self.jobs.sealed_keys(job_id)
        keys: dict[str, str] = json.loads(self.seal.open(sealed)) if sealed else {}
        return keys

    async def _own(self, wanted: Collection[str]) -> dict[str, str]:
        """Opens only the keys that are needed, so that one that cannot be opened affects no other agent."""
        there = {name: value for name, value in self.from_environment.items() if name in wanted}
        missing = set(wanted) - set(there)
        stored = [key for key in await self.stored.all() if key.name in missing]
        return {**{key.name: self.seal.open(key.sealed) for key in stored}, **there}


def _ours_stays_outside(agent: AgentSpec, name: str) -> MissingKey:
    return MissingKey(
        f"Agent {agent.name} needs this installation's key for {agent.model} inside of its sandbox.",
        field="model",
        fix=f"Send a key of your own with the job, X-Provider-Key: {name}=…, or choose an agent that calls its model "
        "from outside, such as terminus-2. The operator can allow it with SEATRIAL_ALLOW_KEYS_IN_SANDBOX.",
    )
