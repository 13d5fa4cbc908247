"""Gives an agent its model: the name, the address, the options and the key. The key is never part of Harbor's
configuration, because Harbor writes that into the trial's directory.

The model client of an agent that runs on the host (terminus-2) gets the key directly. An agent that is installed into
the sandbox calls the model from there. If the model has its own address, a relay outside the sandbox adds the key.
Otherwise the key must be in the environment of the agent's commands, where Harbor redacts it. That key came with the
job, unless the job was submitted on the machine or the operator allows the installation's keys in sandboxes. The lock
says whose key it was.

An address that a caller of the service chose is always called through a relay, which follows no redirects.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import AgentConfig

from seatrial.adapters.runner_harbor.config import agent_config
from seatrial.agents.inside import NO_KEY, ModelRoute, call_through_relay
from seatrial.agents.model_retries import CallPace, ModelHealth, RetryLimits, retry_model_calls
from seatrial.agents.terminus import terminus_options
from seatrial.domain.agent_options import file_options
from seatrial.domain.catalogue import addresses_for, keys_for, runs_on_host
from seatrial.engine.provider_pace import ProviderPace
from seatrial.ports.runner import Order
from seatrial.sandboxes.network.relay import ModelRelay
from seatrial.scripted_models.server import ScriptedModels

SCRIPTED = "scripted/"
SCRIPTED_KEY = "scripted"


@dataclass(frozen=True)
class Equipment:
    """The configuration of one try's agent, and what the agent gets in addition to it."""

    agent: AgentConfig
    retries: RetryLimits
    api_key: str | None = None
    route: ModelRoute | None = None
    """For an agent inside the sandbox whose model has an address that the sandbox cannot reach."""
    notes: tuple[str, ...] = ()
    """Notes for the trial's lock."""
    pace: CallPace | None = None
    """For an agent whose calls this process makes."""

    def hand_to(self, agent: BaseAgent) -> ModelHealth:
        """Gives the agent its key, and retries for its model calls. The returned health is updated during the trial."""
        if self.route is not None:
            call_through_relay(agent, self.route)
        return retry_model_calls(agent, self.retries, key=self.api_key, pace=self.pace)


class ModelAccess:
    """One per worker. Starts the scripted model server when the first trial needs it."""

    def __init__(
        self,
        patience_sec: float = 600.0,
        addresses: Mapping[str, str] = MappingProxyType({}),
        pace: ProviderPace | None = None,
        pace_stops_clock: bool = True,
    ) -> None:
        """``addresses``: the operator's addresses of providers, by environment name. LiteLLM cannot read them itself,
        because a worker's environment is scrubbed."""
        self._retries = RetryLimits(limit_sec=patience_sec)
        self._addresses = addresses
        self._pace = pace
        self._pace_stops_clock = pace_stops_clock
        self._scripted: ScriptedModels | None = None
        self._starting = asyncio.Lock()

    async def equip(self, order: Order, relays: AsyncExitStack) -> Equipment:
        """The caller closes ``relays`` when the agent no longer calls its model."""
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
            pace = self._pace_of(model, options.get("api_base"), key)
            if chosen_by_caller:
                relay = ModelRelay(options["api_base"], None, passes_keys=True)
                options["api_base"] = (await relays.enter_async_context(relay)).url
            if key is None and "api_base" in options:
                key = NO_KEY  # model clients refuse to start without a key
            options = _options(order.agent.name, options)
            return Equipment(agent_config(order, model, options, dict(order.agent.env)), self._retries, key, pace=pace)
        return self._inside(order, model, options, key)

    def _pace_of(self, model: str | None, address: object, key: str | None) -> CallPace | None:
        """Calls share a pace if they share a model, an address and an account. One account's limit, or a server that a
        caller chose, must not slow down others."""
        if self._pace is None or model is None:
            return None
        account = hashlib.sha256(f"{address or ''}\0{key or ''}".encode()).hexdigest()[:12]
        return CallPace(self._pace, f"{model[:200]} {account}", self._pace_stops_clock)

    def _inside(self, order: Order, model: str | None, options: dict[str, Any], key: str | None) -> Equipment:
        """An agent that calls its model from inside the sandbox."""
        base_url = options.pop("api_base", None)
        if base_url is None:
            env = {**(order.secrets if key is not None else {}), **order.agent.env}
            whose = "the job's own" if order.keys_are_the_jobs else "this installation's"
            notes = (f"provider key in the sandbox: {whose}",) if key is not None else ()
            return Equipment(agent_config(order, model, options, env), self._retries, notes=notes)
        env = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, "OPENAI_API_KEY": NO_KEY, **order.agent.env}
        route = ModelRoute(url=base_url, headers={"Authorization": f"Bearer {key}"} if key else {})
        return Equipment(agent_config(order, model, options, env), self._retries, route=route)

    async def _server(self) -> ScriptedModels:
        async with self._starting:
            if self._scripted is None:
                server = ScriptedModels()
                await server.__aenter__()
                self._scripted = server
        return self._scripted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._scripted is not None:
            await self._scripted.__aexit__(*exc)


def with_files(order: Order) -> dict[str, Any]:
    """The agent's options. A file in an option is written to disk, and the option becomes its path."""
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
