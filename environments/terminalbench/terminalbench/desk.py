"""The rollouts of one worker process, by the trace that each belongs to.

Verifiers builds tasks anew wherever it needs them, so what they share is found through the process: ``shared_desk``.
"""

import os
from functools import lru_cache

from seatrial.rollouts.counter import Counter, Ticket
from seatrial.rollouts.graded import Graded
from seatrial.rollouts.rollout import Rollout
from seatrial.rollouts.room import RolloutHost
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask
from seatrial.settings import Settings


class Desk:
    """Opens, grades and closes."""

    def __init__(self, rules: RolloutRules) -> None:
        self._room = RolloutHost(Settings(), rules)
        self._counter = Counter()
        self._open: dict[str, tuple[Rollout, Ticket]] = {}

    async def open(self, trace: str, task: FoundTask) -> Ticket:
        rollout = await self._room.open(task)
        ticket = await self._counter.ticket(rollout)
        self._open[trace] = rollout, ticket
        return ticket

    async def grade(self, trace: str) -> Graded:
        rollout, _ = self._open[trace]
        return await rollout.grade()

    def transcript(self, trace: str) -> list[str]:
        return self._open[trace][0].transcript if trace in self._open else []

    async def end(self, trace: str) -> None:
        """May be called again."""
        if (known := self._open.pop(trace, None)) is not None:
            rollout, ticket = known
            self._counter.void(ticket)
            await rollout.close()

    async def close(self) -> None:
        await self._room.close()
        await self._counter.close()


@lru_cache(maxsize=8)
def _shared(rules: RolloutRules, _process: int) -> Desk:
    return Desk(rules)


def shared_desk(rules: RolloutRules) -> Desk:
    """The one of this process; it ends with the interpreter at the latest."""
    return _shared(rules, os.getpid())


async def close_desks(rules: RolloutRules) -> None:
    desk = shared_desk(rules)
    _shared.cache_clear()
    await desk.close()
