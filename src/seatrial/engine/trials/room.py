"""The room of one worker: which trials are in it, what it can run, and what it offers to the store.

The worker asks before each claim. ``domain/fleet/packing.py`` has the rules.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from seatrial.domain.fleet.needs import LEAST_CPUS, Abilities
from seatrial.domain.fleet.packing import NOTHING, Offer, Packing, Size, total
from seatrial.domain.trial import Trial
from seatrial.ports.account import RoomAccount

log = logging.getLogger(__name__)

_LEAST = Size(memory_mb=1, cpus=LEAST_CPUS)
"""No trial takes less."""


class Room:
    """``count`` trials at most and, with ``packing``, what fits. ``knows`` tells whether an agent is installed here."""

    def __init__(
        self,
        count: int,
        abilities: Abilities | None = None,
        packing: Packing | None = None,
        account: RoomAccount | None = None,
        knows: Callable[[str], bool] = lambda agent: True,
    ) -> None:
        self.abilities = abilities or Abilities()
        self.packing = packing
        self._count = count
        self._account = account
        self._knows = knows
        self._inside: dict[int, Size] = {}
        self._is_declared = True

    @classmethod
    def packed(cls, packing: Packing, abilities: Abilities, account: RoomAccount, knows: Callable[[str], bool]) -> Room:
        """As many trials as fit. The count only bounds what one claim may take."""
        return cls(max(1, int(packing.size.cpus / LEAST_CPUS)), abilities, packing, account, knows)

    @property
    def count(self) -> int:
        """The most trials at once."""
        return self._count

    @asynccontextmanager
    async def offering(self) -> AsyncIterator[Offer | None]:
        """What the worker offers; ``None`` if there is no room. Trials that are claimed must enter inside the block."""
        if self.packing is None or self._account is None:
            yield Offer(abilities=self.abilities)
            return
        async with self._account.turn() as mine:
            if not self._is_declared:
                self._declare()
            held = tuple(self._inside.values())
            free = self.packing.size.less(total(held)).less(self._account.others()) if mine else NOTHING
            offer = Offer(abilities=self.abilities, packing=self.packing, free=free, held=held)
            yield offer if free.holds(_LEAST) else None

    def enter(self, trial: Trial) -> None:
        self._inside[trial.id] = NOTHING if self.packing is None else self.packing.demand(trial.needs)
        self._declare()

    def leave(self, trial_id: int) -> None:
        if self._inside.pop(trial_id, None) is not None:
            self._declare()

    def close(self) -> None:
        if self._account is not None:
            self._account.close()

    def knows_agent_of(self, trial: Trial) -> bool:
        """Whether the trial's agent is installed. If not, the worker claims no more of its trials."""
        agent = trial.needs.agent
        if not agent or self._knows(agent):
            return True
        lacks = tuple(sorted({*self.abilities.lacks, agent}))
        self.abilities = self.abilities.model_copy(update={"lacks": lacks})
        return False

    def _declare(self) -> None:
        """No trial ends because the account cannot be written. It is written again with the next change or offer."""
        if self._account is None:
            return
        was_declared, self._is_declared = self._is_declared, False
        try:
            self._account.declare(total(self._inside.values()))
        except OSError as fault:
            if was_declared:
                log.warning("The other workers of this machine cannot see what this one holds: %s", fault)
            return
        self._is_declared = True
