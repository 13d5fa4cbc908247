"""Gives an agent its model: the name, the address, the options, the key. The key goes round Harbor's configuration,
because Harbor writes that into the trial's directory.

An agent that runs on the host (terminus-2) gets the key handed to its model client. An agent that is installed into the
sandbox calls the model from in there: where the model has an address of its own, through a relay that adds the key
outside; where it is a provider's, the key has to be in the environment of its commands, and Harbor redacts that. Such
a key came with the job, unless the job was given at the machine or the operator allows ours in sandboxes; the lock says
whose it was.

An address that a caller of the service chose is always called through a relay, so that it cannot redirect us.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Self

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import AgentConfig

from seatrial.adapters.runner_harbor.config import agent_config
from seatrial.agents.inside import NO_KEY, ModelRoute, call_through_relay
from seatrial.agents.patience import ModelHealth, Patience, make_patient
from seatrial.agents.terminus import terminus_options
from seatrial.domain.agent_options import file_options
from seatrial.domain.catalogue import addresses_for, keys_for, runs_on_host
from seatrial.ports.runner import Order
from seatrial.sandboxes.network.relay import ModelRelay
from seatrial.scripted_models.server import ScriptedModels

SCRIPTED = "scripted/"
SCRIPTED_KEY = "scripted"


@dataclass(frozen=True)
class Equipment:
    """What one try's agent is configured with, and what it is handed besides."""

    agent: AgentConfig
    patience: Patience
    api_key: str | None = None
    route: ModelRoute | None = None
    """For an agent inside the sandbox whose model has an address that the sandbox cannot reach."""
    notes: tuple[str, ...] = ()
    """What the trial's lock says about it."""

    def hand_to(self, agent: BaseAgent) -> ModelHealth:
        """The key, and patience with the model's service; tells afterwards how that service behaved."""
        if self.route is not None:
            call_through_relay(agent, self.route)
        return make_patient(agent, self.patience, key=self.api_key)


class ModelAccess:
    """One per worker. Starts the scripted model server when the first trial asks for it."""

    def __init__(self, patience_sec: float = 600.0, addresses: Mapping[str, str] = MappingProxyType({})) -> None:
        """``addresses`` are what the operator set for providers, by environment name; LiteLLM cannot read them there,
        because a worker's environment is emptied."""
        self._patience = Patience(limit_sec=patience_sec)
        self._addresses = addresses
        self._scripted: ScriptedModels | None = None
        self._starting = asyncio.Lock()

    async def equip(self, order: Order, relays: AsyncExitStack) -> Equipment:
        """``relays`` stay open as long as the agent may call its model; the caller closes them."""
        model, options, key = order.agent.model, _renamed(with_files(order)), None
        chosen_by_caller = "api_base" in options and not order.job.own_keys
        if model is not None and model.startswith(SCRIPTED):
            model, key = f"openai/{model.removeprefix(SCRIPTED)}", SCRIPTED_KEY
            options.setdefault("api_base", (await self._server()).base_url)
        elif model is not None:
            key = _first(order.secrets, keys_for(model))
        if runs_on_host(order.agent.name):
            if model is not None and (address := _first(self._addresses, addresses_for(model))) is not None:
                options.setdefault("api_base", address)
            if chosen_by_caller:
                relay = ModelRelay(options["api_base"], None, passes_keys=True)
                options["api_base"] = (await relays.enter_async_context(relay)).url
            if key is None and "api_base" in options:
                key = NO_KEY  # model clients refuse to start without any
            options = _options(order.agent.name, options)
            return Equipment(agent_config(order, model, options, dict(order.agent.env)), self._patience, key)
        return self._inside(order, model, options, key)

    def _inside(self, order: Order, model: str | None, options: dict[str, Any], key: str | None) -> Equipment:
        """An agent that calls its model from inside the sandbox."""
        base_url = options.pop("api_base", None)
        if base_url is None:
            env = {**(order.secrets if key is not None else {}), **order.agent.env}
            whose = "the job's own" if order.keys_are_the_jobs else "this installation's"
            notes = (f"provider key in the sandbox: {whose}",) if key is not None else ()
            return Equipment(agent_config(order, model, options, env), self._patience, notes=notes)
        env = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, "OPENAI_API_KEY": NO_KEY, **order.agent.env}
        route = ModelRoute(url=base_url, headers={"Authorization": f"Bearer {key}"} if key else {})
        return Equipment(agent_config(order, model, options, env), self._patience, route=route)

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


def with_files(order: Order) -> dict[str, Any]:
    """The agent's options; a file that came with the job is written down, and its option becomes the path."""
    options = dict(order.agent.options)
    for name in file_options(order.agent.name) & options.keys():
        if isinstance(options[name], Mapping) and "content" in options[name]:
            content = options[name]["content"]
            place = order.work_dir / "options" / f"{name}.yaml"
            place.parent.mkdir(exist_ok=True)
            place.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
            options[name] = str(place)
    return options


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Some clients call a model's address by another name."""
    return {"api_base" if name == "base_url" else name: value for name, value in options.items()}


def _options(agent: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return terminus_options(options) if agent == "terminus-2" else dict(options)


def _first(named: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((named[name] for name in names if name in named), None)
