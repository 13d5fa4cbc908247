"""Provider keys: where they come from, who gets them, and how they rest.

A key comes from the environment of the process, from the installation's store (an admin entered it), or with one job.
Stored ones are sealed; those of a job are gone when it ends. A trial gets only what its job's models need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.engine.jobs.admission import Admission, calls_from_inside
from seatrial.errors import InvalidInput, MissingKey
from seatrial.ports.seal import Seal
from seatrial.ports.store import JobStore, KeyStore

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


class KeyRing:
    def __init__(
        self,
        store: KeyStore,
        jobs: JobStore,
        seal: Seal,
        from_environment: Callable[[], Mapping[str, str]],
        keys_for: Callable[[str], tuple[str, ...]],
        admission: Admission | None = None,
    ) -> None:
        """``admission`` says for which agents the installation's keys may be used."""
        self._admission = admission or Admission()
        self._store = store
        self._jobs = jobs
        self._seal = seal
        self._from_environment = from_environment
        self._keys_for = keys_for

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
        return frozenset(self._from_environment()) | stored

    async def names_of_job(self, job_id: int) -> frozenset[str]:
        """Keys that came with a job and are still kept, since it has not ended."""
        sealed = await self._jobs.job_keys(job_id)
        return frozenset(json.loads(self._seal.open(sealed))) if sealed else frozenset()

    async def require(self, spec: JobSpec, given: Collection[str]) -> None:
        """A missing key is one sentence now, instead of an error of every trial later."""
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
        own = await self._own() if self._admission.may_use_own_keys(job.spec, agent) else {}
        found = {name: value for name, value in {**own, **given}.items() if name in wanted}
        return TrialKeys(found, are_the_jobs=set(found) <= set(given))

    async def _own(self) -> dict[str, str]:
        stored = {key.name: self._seal.open(key.sealed) for key in await self._store.provider_keys()}
        return {**stored, **self._from_environment()}


def _ours_stays_outside(agent: AgentSpec, name: str) -> MissingKey:
    return MissingKey(
        f"Agent {agent.name} would need this installation's key for {agent.model} inside of its sandbox.",
        field="model",
        fix=f"Send a key of your own with the job, X-Provider-Key: {name}=…, or choose an agent that calls its model "
        "from outside, such as terminus-2. The operator can allow it with SEATRIAL_ALLOW_KEYS_IN_SANDBOX.",
    )
