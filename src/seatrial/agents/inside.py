"""Agents that run inside the sandbox and have to reach a model that the sandbox cannot, or whose key it must not see.

The runner calls ``call_through_relay`` for an installed agent whose model has an address of its own: the scripted
server, or a model the user serves. While the agent runs, a relay stands in the sandbox's own network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.network.relay import ModelRelay

NO_KEY = "given-outside"
"""What the sandbox sees in place of a key; agents refuse to start without any."""


class ModelRoute(Frozen):
    """Where an installed agent's calls go, and by which names the agent looks that up."""

    url: str
    headers: dict[str, str] = {}
    """What the model wants with every call, the key among them. Never told to the sandbox."""
    url_names: tuple[str, ...] = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    key_names: tuple[str, ...] = ("OPENAI_API_KEY",)

    def __repr__(self) -> str:  # the headers hold the key
        return f"ModelRoute({self.url!r})"

    __str__ = __repr__


def call_through_relay(agent: Any, route: ModelRoute) -> None:
    """Has the agent's ``run`` open a relay in its sandbox and point the agent at it.

    A sandbox on this machine's own network, or of another make, gets the address as it is. Where a sandbox of ours
    cannot be entered, ``run`` ends with ``SetupProblem`` before the agent does anything."""
    run = agent.run

    async def relayed(instruction: str, environment: Any, context: Any) -> None:
        namespace: Path | None = getattr(environment, "network_namespace", None)
        if namespace is None:
            await run(instruction=instruction, environment=environment, context=context)
            return
        async with ModelRelay(route.url, namespace, route.headers) as relay:
            variables = dict.fromkeys(route.url_names, relay.url) | dict.fromkeys(route.key_names, NO_KEY)
            agent._extra_env.update(variables)
            with environment.scoped_exec_env(variables):
                await run(instruction=instruction, environment=environment, context=context)

    agent.run = relayed
