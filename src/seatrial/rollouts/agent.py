"""The agent of a rollout: it runs commands that come from outside.

Harbor's ``Trial`` creates it, starts the sandbox before it and the verifier after it, and applies the task's limits, as
with any agent. ``Rollout`` sends the commands.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext

IMPORT_PATH = f"{__name__}:DirectedAgent"


class OutOfTime(Exception):
    """The agent's phase is over: its time has run out, or ``finish`` was called. No more commands run."""


@dataclass(frozen=True, slots=True)
class _Order:
    command: str
    timeout_sec: int | None
    answer: asyncio.Future[ExecResult]


class DirectedAgent(BaseAgent):
    """Runs one command after another until ``finish``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.begun = asyncio.Event()
        self._over = False
        self._orders: asyncio.Queue[_Order | None] = asyncio.Queue()

    @staticmethod
    @override
    def name() -> str:
        return "directed"

    @override
    def version(self) -> str:
        return "1"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        """Installs nothing in the sandbox."""

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        self.begun.set()
        try:
            while (order := await self._orders.get()) is not None:
                await _carry_out(order, environment)
        finally:
            self._over = True
            while not self._orders.empty():
                if (late := self._orders.get_nowait()) is not None:
                    _refuse(late)

    async def command(self, command: str, timeout_sec: int | None) -> ExecResult:
        """Raises ``OutOfTime`` once the agent's phase is over, ``RuntimeError`` if the command timed out. Any other
        error comes from the sandbox."""
        if self._over:
            raise OutOfTime
        answer: asyncio.Future[ExecResult] = asyncio.get_running_loop().create_future()
        self._orders.put_nowait(_Order(command, timeout_sec, answer))
        return await answer

    def finish(self) -> None:
        """Ends the agent's phase: Harbor continues with the verifier."""
        self._orders.put_nowait(None)


async def _carry_out(order: _Order, environment: BaseEnvironment) -> None:
    try:
        result = await environment.exec(order.command, timeout_sec=order.timeout_sec)
    except asyncio.CancelledError:
        _refuse(order)
        raise
    except Exception as error:
        if not order.answer.done():
            order.answer.set_exception(error)
    else:
        if not order.answer.done():
            order.answer.set_result(result)


def _refuse(order: _Order) -> None:
    if not order.answer.done():
        order.answer.set_exception(OutOfTime())
