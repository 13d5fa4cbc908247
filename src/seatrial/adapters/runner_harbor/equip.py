"""Gives an agent its model: the name, the address, the options, the key. The key goes round Harbor's configuration,
because Harbor writes that into the trial's directory.

An agent that runs on the host (terminus-2) gets the key handed to its model client. An agent that is installed into the
sandbox calls the model from in there, so its key has to be in the environment of its commands; Harbor redacts that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import AgentConfig

from seatrial.adapters.runner_harbor.config import agent_config
from seatrial.agents.patience import ModelHealth, Patience, make_patient
from seatrial.agents.terminus import terminus_options
from seatrial.domain.catalogue import keys_for, runs_on_host
from seatrial.ports.runner import Order
from seatrial.testing.model_server import ScriptedModels

SCRIPTED = "scripted/"


@dataclass(frozen=True)
class Equipment:
    """What one attempt's agent is configured with, and what it is handed besides."""

    agent: AgentConfig
    api_key: str | None = None

    def hand_to(self, agent: BaseAgent) -> ModelHealth:
        """The key, and patience with the model's service; tells afterwards how that service behaved."""
        return make_patient(agent, Patience(), key=self.api_key)


class ModelAccess:
    """One per worker. Starts the scripted model server when the first trial asks for it."""

    def __init__(self) -> None:
        self._scripted: ScriptedModels | None = None
        self._starting = asyncio.Lock()

    async def equip(self, order: Order) -> Equipment:
        spec = order.agent
        if spec.model is not None and spec.model.startswith(SCRIPTED):
            return await self._scripted_equipment(order, spec.model.removeprefix(SCRIPTED))
        key = _first(order.secrets, keys_for(spec.model)) if spec.model else None
        env = dict(spec.env)
        if key is not None and not runs_on_host(spec.name):
            env = {**dict(order.secrets), **env}
        config = agent_config(order, spec.model, _options(spec.name, spec.options), env)
        return Equipment(config, key if runs_on_host(spec.name) else None)

    async def _scripted_equipment(self, order: Order, script: str) -> Equipment:
        base_url = (await self._server()).base_url
        spec = order.agent
        model = f"openai/{script}"
        if runs_on_host(spec.name):
            options = _options(spec.name, {"api_base": base_url, **spec.options})
            return Equipment(agent_config(order, model, options, dict(spec.env)), api_key="scripted")
        env = {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, **spec.env}
        return Equipment(agent_config(order, model, dict(spec.options), env))

    async def _server(self) -> ScriptedModels:
        async with self._starting:
            if self._scripted is None:
                server = ScriptedModels()
                await server.__aenter__()
                self._scripted = server
        return self._scripted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scripted is not None:
            await self._scripted.__aexit__(kind, error, trace)


def _options(agent: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return terminus_options(options) if agent == "terminus-2" else dict(options)


def _first(secrets: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((secrets[name] for name in names if name in secrets), None)
