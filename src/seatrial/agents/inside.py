"""For agents inside the sandbox whose model the sandbox cannot reach, or whose key it must not see.

The runner calls ``call_through_relay`` for an installed agent whose model has a custom address: the scripted server, or
a model that the user serves. While the agent runs, a relay listens in the sandbox's network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.network.relay import ModelRelay

NO_KEY = "given-outside"
"""Placeholder key in the sandbox; agents refuse to start without a key."""


class ModelRoute(Frozen):
    """Where an installed agent's calls go, and the variables that tell the agent."""

    url: str
    headers: dict[str, str] = {}
    """Headers of every model call, including the key. Never sent to the sandbox."""
    url_names: tuple[str, ...] = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    key_names: tuple[str, ...] = ("OPENAI_API_KEY",)

    def __repr__(self) -> str:  # the headers contain the key
        return f"ModelRoute({self.url!r})"

    __str__ = __repr__


def call_through_relay(agent: Any, route: ModelRoute) -> None:
    """Makes the agent's ``run`` open a relay in its sandbox and use it.

    A sandbox on the host network, or of another provider, gets the address unchanged. If a Seatrial sandbox cannot be
    entered, ``run`` raises ``SetupProblem`` before the agent does anything.
    """
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
