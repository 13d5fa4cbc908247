"""The open rollouts of one worker process, by trace.

Verifiers creates tasks wherever it needs them, so they share this object through the process: ``shared_rollouts``.
"""

import os
from functools import lru_cache

from seatrial.rollouts.command_socket import CommandSocket, Ticket
from seatrial.rollouts.graded import Graded
from seatrial.rollouts.host import RolloutHost
from seatrial.rollouts.rollout import Rollout
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask
from seatrial.settings import Settings


class OpenRollouts:
    """Opens, grades and closes rollouts."""

    def __init__(self, rules: RolloutRules) -> None:
        self._host = RolloutHost(Settings(), rules)
        self._commands = CommandSocket()
        self._open: dict[str, tuple[Rollout, Ticket]] = {}

    async def open(self, trace: str, task: FoundTask) -> Ticket:
        rollout = await self._host.open(task)
        ticket = await self._commands.ticket(rollout)
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
            self._commands.void(ticket)
            await rollout.close()

    async def close(self) -> None:
        await self._host.close()
        await self._commands.close()


@lru_cache(maxsize=8)
def _shared(rules: RolloutRules, _process: int) -> OpenRollouts:
    return OpenRollouts(rules)


def shared_rollouts(rules: RolloutRules) -> OpenRollouts:
    """The instance of this process; closed when the interpreter exits at the latest."""
    return _shared(rules, os.getpid())


async def close_rollouts(rules: RolloutRules) -> None:
    rollouts = shared_rollouts(rules)
    _shared.cache_clear()
    await rollouts.close()
