"""For agents inside the sandbox: leads their model calls to the gate.

The runner calls ``call_through_gate`` for an installed agent whose model has a route. While the agent runs, a door of
the gate is open in the sandbox's network. The agent gets its address, and a placeholder instead of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from harbor.models.task.config import NetworkMode

from seatrial.errors import SetupProblem
from seatrial.sandboxes.own_time import own_clock

NO_KEY = "given-outside"
"""Placeholder key in the sandbox; agents refuse to start without a key."""

_OWN_VARIABLES: Mapping[str, Mapping[str, str]] = {
    # The gate retries; the agent itself would try ten times. It wants a key for servers that need none.
    "mini-swe-agent": {"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1", "MSWEA_API_KEY": NO_KEY},
    "openhands-sdk": {"LLM_BASE_URL": "{base}", "LLM_API_KEY": NO_KEY},
    "openhands": {"LLM_BASE_URL": "{base}", "LLM_API_KEY": NO_KEY},
    "vibe": {"VIBE_API_BASE": "{base}", "VIBE_BACKEND": "{vibe_backend}"},
}
"""Variables of single agents, beside those of the model's provider."""

ClockStop = Callable[[], AbstractContextManager[None]]
OpenDoor = Callable[[Path | None, ClockStop], AbstractAsyncContextManager[Mapping[str, str]]]
"""Opens a door in a network namespace (``None``: this machine's) for an agent with that clock. Gives the variables that
tell the agent its address."""


def own_variables(agent: str, provider: str, door: str) -> dict[str, str]:
    """What this agent needs in addition, to find the door."""
    backend = "mistral" if provider == "mistral" else "generic"
    found = _OWN_VARIABLES.get(agent, {})
    return {name: value.format(base=f"{door}/v1", vibe_backend=backend) for name, value in found.items()}


def call_through_gate(
    agent: Any, open_door: OpenDoor, without_door: Callable[[], Mapping[str, str]] | None = None
) -> None:
    """Makes the agent's ``run`` open a door in its sandbox and use it.

    If a sandbox cannot be entered, the agent gets the variables of ``without_door``, which may have its key. Where that
    is not allowed it is ``None``, and ``run`` raises ``SetupProblem`` before the agent does anything.
    """
    run = agent.run

    async def gated(instruction: str, environment: Any, context: Any) -> None:
        async with AsyncExitStack() as stack:
            try:
                namespace = environment.network_namespace
            except SetupProblem:
                if without_door is None:
                    raise
                variables = without_door()
            else:
                variables = await stack.enter_async_context(open_door(namespace, own_clock()))
            agent._extra_env.update(variables)
            stack.enter_context(environment.scoped_exec_env(variables))
            await run(instruction=instruction, environment=environment, context=context)

    agent.run = gated


def tell_network(agent: Any, tell: Callable[[bool], None]) -> None:
    """Makes the agent's ``run`` tell first whether its sandbox may reach the internet. A step of a task may have a
    network of its own, so it is told each time."""
    run = agent.run

    async def telling(instruction: str, environment: Any, context: Any) -> None:
        tell(environment.network_policy.network_mode is NetworkMode.PUBLIC)
        await run(instruction=instruction, environment=environment, context=context)

    agent.run = telling
