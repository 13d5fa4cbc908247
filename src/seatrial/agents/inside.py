"""For agents inside the sandbox: leads their model calls to the gate.

The runner calls ``call_through_gate`` for an installed agent whose model has a route. While the agent runs, a door of
the gate is open in the sandbox's network. The agent gets its address, and a placeholder instead of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any

from seatrial.sandboxes.own_time import own_clock

NO_KEY = "given-outside"
"""Placeholder key in the sandbox; agents refuse to start without a key."""

ClockStop = Callable[[], AbstractContextManager[None]]
OpenDoor = Callable[[Path | None, ClockStop], AbstractAsyncContextManager[Mapping[str, str]]]
"""Opens a door in a network namespace, this machine's if it is ``None``, for an agent with that clock. Gives the
variables that tell the agent."""


def call_through_gate(agent: Any, open_door: OpenDoor) -> None:
    """Makes the agent's ``run`` open a door in its sandbox and use it.

    If a sandbox cannot be entered, ``run`` raises ``SetupProblem`` before the agent does anything.
    """
    run = agent.run

    async def gated(instruction: str, environment: Any, context: Any) -> None:
        async with open_door(environment.network_namespace, own_clock()) as variables:
            agent._extra_env.update(variables)
            with environment.scoped_exec_env(variables):
                await run(instruction=instruction, environment=environment, context=context)

    agent.run = gated
