"""The slots of one worker: which trials it holds, what it can run, and what it offers when it claims more.

The worker asks before each claim. ``domain/fleet/packing.py`` has the rules.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from seatrial.domain.fleet.needs import LEAST_CPUS, Abilities
from seatrial.domain.fleet.packing import NOTHING, Offer, Packing, Size, total
from seatrial.domain.trial import Trial
from seatrial.ports.machine_usage import MachineUsage

log = logging.getLogger(__name__)

_LEAST = Size(memory_mb=1, cpus=LEAST_CPUS)
"""No trial takes less."""


class TrialSlots:
    """``count`` trials at most and, with ``packing``, what fits. ``knows`` tells whether an agent is installed here."""

    def __init__(
        self,
        count: int,
        abilities: Abilities | None = None,
        packing: Packing | None = None,
        machine_usage: MachineUsage | None = None,
        knows: Callable[[str], bool] = lambda agent: True,
    ) -> None:
        self.abilities = abilities or Abilities()
        self.packing = packing
        self._count = count
        self._machine_usage = machine_usage
        self._knows = knows
        self._inside: dict[int, Size] = {}
        self._is_declared = True

    @classmethod
    def packed(
        cls, packing: Packing, abilities: Abilities, machine_usage: MachineUsage, knows: Callable[[str], bool]
    ) -> TrialSlots:
        """As many trials as fit. The count only bounds what one claim may take."""
        return cls(max(1, int(packing.size.cpus / LEAST_CPUS)), abilities, packing, machine_usage, knows)

    @property
    def count(self) -> int:
        """The most trials at once."""
        return self._count

    @asynccontextmanager
    async def offering(self) -> AsyncIterator[Offer | None]:
        """What the worker offers; ``None`` if it has no room. Call ``enter`` for each claimed trial in the block."""
        if self.packing is None or self._machine_usage is None:
            yield Offer(abilities=self.abilities)
            return
        async with self._machine_usage.turn() as mine:
            if not self._is_declared:
                self._declare()
            held = tuple(self._inside.values())
            free = self.packing.size.less(total(held)).less(self._machine_usage.others()) if mine else NOTHING
            offer = Offer(abilities=self.abilities, packing=self.packing, free=free, held=held)
            yield offer if free.holds(_LEAST) else None

    def enter(self, trial: Trial) -> None:
        self._inside[trial.id] = NOTHING if self.packing is None else self.packing.demand(trial.needs)
        self._declare()

    def leave(self, trial_id: int) -> None:
        if self._inside.pop(trial_id, None) is not None:
            self._declare()

    def close(self) -> None:
        if self._machine_usage is not None:
            self._machine_usage.close()

    def knows_agent_of(self, trial: Trial) -> bool:
        """Whether the trial's agent is installed. If not, the worker claims no more of its trials."""
        agent = trial.needs.agent
        if not agent or self._knows(agent):
            return True
        lacks = tuple(sorted({*self.abilities.lacks, agent}))
        self.abilities = self.abilities.model_copy(update={"lacks": lacks})
        return False

    def _declare(self) -> None:
        """No trial ends because what it holds cannot be written. It is written again with the next change or offer."""
        if self._machine_usage is None:
            return
        was_declared, self._is_declared = self._is_declared, False
        try:
            self._machine_usage.declare(total(self._inside.values()))
        except OSError as fault:
            if was_declared:
                log.warning("The other workers of this machine cannot see what this one holds: %s", fault)
            return
        self._is_declared = True
