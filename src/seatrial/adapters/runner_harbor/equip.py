"""Gives an agent its model: the name, the address, the options and the key. The key is never part of Harbor's
configuration, because Harbor writes that into the trial's directory.

All calls go through the worker's gate, which adds the key outside: those of an agent that runs on the host (terminus-2)
and those of an agent that is installed into one of our sandboxes. Two kinds cannot: models whose provider speaks none
of the gate's formats, and installed agents in a sandbox that is not ours. The model client on the host then gets the
key directly. In a sandbox the key must be in the environment of the agent's commands, where Harbor redacts it; that key
came with the job, unless the operator allows the installation's keys in sandboxes. The trial is marked. Where a budget
holds, neither kind runs, because its calls would not be counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from seatrial.adapters.runner_harbor.config import OUR_SANDBOXES, agent_config, with_files
from seatrial.adapters.runner_harbor.equipment import KEY_INSIDE, WEB_SEARCH_OFF, WITHOUT_WEB_SEARCH, Equipment
from seatrial.adapters.runner_harbor.spending import Spending
from seatrial.agents.inside import NO_KEY, own_variables
from seatrial.agents.model_retries import CallPace
from seatrial.agents.terminus import terminus_options
from seatrial.domain.agents.catalogue import addresses_for, calls_any_address, keys_for, provider_of, runs_on_host
from seatrial.domain.model_calls.record import Record
from seatrial.engine.jobs.request import looks_secret
from seatrial.engine.model_patience import RetryLimits
from seatrial.engine.provider_pace import ProviderPace
from seatrial.errors import InvalidInput, SetupProblem, Unsupported
from seatrial.gateway.agent_clock import ClockStop
from seatrial.gateway.call_budget import CallBudget
from seatrial.gateway.gate import Gate
from seatrial.gateway.replay import CallReplay
from seatrial.gateway.routes import Route, Routes, agent_variables, host_address, host_model, route_to
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.ports.runner import Order
from seatrial.scripted_models.server import ScriptedModels

SCRIPTED = "scripted/"
SCRIPTED_KEY = "scripted"
_DAY_SEC = 86_400.0
_UNCOUNTED = "model calls were not counted: they did not pass the gate"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an agent is to call."""

    model: str
    options: dict[str, Any]
    key: str | None
    route: Route | None


class ModelAccess:
    """One per worker. Starts the gate and the scripted model server when the first trial needs them."""

    def __init__(
        self,
        patience_sec: float = 600.0,
        addresses: Mapping[str, str] = MappingProxyType({}),
        pace: ProviderPace | None = None,
        pace_stops_clock: bool = True,
        spending: Spending | None = None,
    ) -> None:
        """``addresses``: the operator's addresses of providers, by environment name. LiteLLM cannot read them itself,
        because a worker's environment is scrubbed."""
        self._retries = RetryLimits(limit_sec=patience_sec)
        self._addresses = addresses
        self._pace = pace
        self._pace_stops_clock = pace_stops_clock
        self._spending = spending or Spending()
        self._started = AsyncExitStack()
        self._gate: Gate | None = None
        self._scripted: ScriptedModels | None = None
        self._starting = asyncio.Lock()

    async def equip(self, order: Order, doors: AsyncExitStack, sandbox: str = "oci") -> Equipment:
        """The caller closes ``doors`` when the agent no longer calls its model."""
        wanted = await self._wanted(order)
        if wanted is None:
            options, env = _options(order.agent.name, _renamed(with_files(order))), dict(order.agent.env)
            return Equipment(agent_config(order, None, options, env), self._retries)
        own_on_host = _says_it_calls_from_host(order.agent.name)
        on_host = runs_on_host(order.agent.name) or own_on_host
        takes_address = calls_any_address(order.agent.name) or own_on_host or "api_base" in wanted.options
        if wanted.route is not None and (takes_address if on_host else sandbox in OUR_SANDBOXES):
            calls = await self._calls(order)
            doors.callback(calls.close)
            call_budget_of = self._spending.call_budget_of if order.job.calls_providers else None
            call_budget = doors.enter_context(call_budget_of(order)) if call_budget_of is not None else None
            # Offline until the agent's sandbox is known.
            routes = Routes([wanted.route, *self._others(order, wanted.route)], online=False)
            if on_host:
                return await self._on_host(order, wanted, calls, routes, call_budget, doors)
            return await self._inside(order, wanted, calls, routes, call_budget)
        if order.job.replay is not None:
            raise Unsupported(
                f"Calls of {order.agent.name} to {wanted.model} do not pass the gate, so they cannot be replayed.",
                field="replay",
            )
        if "api_base" in wanted.options and not order.job.own_keys:
            raise InvalidInput(
                f"Models of {provider_of(wanted.model)!r} cannot be called at an address that a caller chose.",
                field="model",
            )
        return self._past_the_gate(order, wanted, on_host=on_host)

    async def _wanted(self, order: Order) -> _Wanted | None:
        model, options = order.agent.model, _renamed(with_files(order))
        if model is None:
            return None
        if model.startswith(SCRIPTED):
            name = f"openai/{model.removeprefix(SCRIPTED)}"
            address = options.pop("api_base", None) or (await self._server()).base_url
            route = route_to(name, SCRIPTED_KEY, address)
            named = None if route is None else replace(route, litellm_name=model, provider="scripted")
            return _Wanted(name, {**options, "api_base": address}, SCRIPTED_KEY, self._priced(named))
        key = _first(order.secrets, keys_for(model)) or _first(order.agent.env, keys_for(model))
        address = options.get("api_base") or _first(self._addresses, addresses_for(model))
        return _Wanted(model, options, key, self._priced(route_to(model, key, address)))

    def _priced(self, route: Route | None) -> Route | None:
        return None if route is None else replace(route, price=self._spending.price_of(route.litellm_name))

    def _others(self, order: Order, route: Route) -> Iterator[Route]:
        """Further models that the job names. They share the provider, its address and the key."""
        options = {**order.agent.options, **order.agent.env}
        named = [value for name, value in options.items() if "model" in name.lower() and isinstance(value, str)]
        for model in dict.fromkeys([*(agent.model for agent in order.job.agents), *named]):
            if model and provider_of(model) == route.provider and model != route.litellm_name:
                other = route_to(model, None, route.base)
                if other is not None:
                    yield replace(other, headers=route.headers, price=self._spending.price_of(model))

    async def _calls(self, order: Order) -> TrialCalls:
        # Other variables of the agent are ordinary words: without them, an answer could not be replayed.
        given = [value for name, value in order.agent.env.items() if looks_secret(name)]
        secrets, full = [*order.secrets.values(), *given], order.job.record is Record.FULL
        replay = await _replay(order, secrets)
        return TrialCalls(order.work_dir, full=full, secrets=secrets, stops_clock=self._pace_stops_clock, replay=replay)

    async def _on_host(
        self,
        order: Order,
        wanted: _Wanted,
        calls: TrialCalls,
        routes: Routes,
        call_budget: CallBudget | None,
        doors: AsyncExitStack,
    ) -> Equipment:
        assert wanted.route is not None
        gate = await self._open_gate()
        door = await doors.enter_async_context(gate.open_for(calls, None, routes, call_budget))
        options = _options(order.agent.name, {**wanted.options, "api_base": host_address(wanted.route, door.url)})
        model = host_model(wanted.route, wanted.model)
        # The gate retries, so what comes through is final.
        once = RetryLimits(limit_sec=0.0, request_timeout_sec=_DAY_SEC)
        config = agent_config(order, model, options, _env(order))
        return Equipment(config, once, NO_KEY, calls=calls, routes=routes, call_budget=call_budget)

    async def _inside(
        self, order: Order, wanted: _Wanted, calls: TrialCalls, routes: Routes, call_budget: CallBudget | None
    ) -> Equipment:
        assert wanted.route is not None
        gate, route = await self._open_gate(), wanted.route
        options = {name: value for name, value in wanted.options.items() if name != "api_base"}
        notes = self._without_web_search(order, options)

        @asynccontextmanager
        async def open_door(namespace: Path | None, clock: ClockStop) -> AsyncIterator[Mapping[str, str]]:
            async with gate.open_for(calls, namespace, routes, call_budget) as door:
                calls.begins(clock)
                yield {
                    **agent_variables(route, door.url, NO_KEY),
                    **own_variables(order.agent.name, route.provider, door.url),
                }

        # Agents refuse to be made without a key. The address is known when the sandbox is there.
        told = {**agent_variables(route, "", NO_KEY), **own_variables(order.agent.name, route.provider, "")}
        keys = {name: NO_KEY for name, value in told.items() if value == NO_KEY}
        return Equipment(
            agent_config(order, wanted.model, options, {**_env(order), **keys}),
            self._retries,
            open_door=open_door,
            without_door=self._without_door(order, wanted, notes),
            notes=notes,
            calls=calls,
            routes=routes,
            call_budget=call_budget,
        )

    def _without_web_search(self, order: Order, options: dict[str, Any]) -> list[str]:
        """Takes it out of the options where the gate would refuse it, and returns a note."""
        off = WITHOUT_WEB_SEARCH.get(order.agent.name, {})
        if not off or not (order.task.network_mode not in (None, "public") or self._spending.in_dollars(order)):
            return []
        options.update(off)
        return [WEB_SEARCH_OFF]

    def _without_door(self, order: Order, wanted: _Wanted, notes: list[str]) -> Callable[[], Mapping[str, str]] | None:
        """For a sandbox whose network cannot be entered, such as one of a container engine elsewhere. ``None`` if no
        key may go in, or if a budget holds, because calls are not counted there."""
        key_names = [name for name in keys_for(wanted.model) if name in order.secrets]
        closed = not order.keys_may_enter or self._spending.cap_on(order) or order.job.replay is not None
        if not key_names or closed or "api_base" in wanted.options:
            return None

        def variables() -> Mapping[str, str]:
            notes.extend((_key_note(order), _UNCOUNTED))
            return {name: order.secrets[name] for name in key_names}

        return variables

    def _past_the_gate(self, order: Order, wanted: _Wanted, *, on_host: bool) -> Equipment:
        """For models and sandboxes that the gate cannot serve."""
        model, options, key = wanted.model, dict(wanted.options), wanted.key
        if whose := self._spending.cap_on(order):
            raise Unsupported(f"{whose} cannot be kept: calls to {model} would not pass the gate from here.")
        if on_host:
            pace = self._pace_of(model, options.get("api_base"), key)
            config = agent_config(order, model, _options(order.agent.name, options), dict(order.agent.env))
            return Equipment(config, self._retries, key, pace=pace, notes=[_UNCOUNTED])
        address = options.pop("api_base", None)
        if address is not None:  # the sandbox has to reach it by itself, and gets no key for it
            env = {"OPENAI_BASE_URL": address, "OPENAI_API_BASE": address, "OPENAI_API_KEY": NO_KEY}
            config = agent_config(order, model, options, {**env, **order.agent.env})
            return Equipment(config, self._retries, notes=[_UNCOUNTED])
        if key is not None and not order.keys_may_enter:
            raise Unsupported(
                f"The key for {model} would have to go into the sandbox, which the operator does not allow.",
                fix="Use one of our sandboxes, send a key of your own with the job, or have the operator set "
                "SEATRIAL_ALLOW_KEYS_IN_SANDBOX.",
            )
        env = {**(order.secrets if key is not None else {}), **order.agent.env}
        notes = [_key_note(order), _UNCOUNTED] if key is not None else [_UNCOUNTED]
        return Equipment(agent_config(order, model, options, env), self._retries, notes=notes)

    def _pace_of(self, model: str | None, address: object, key: str | None) -> CallPace | None:
        """Calls share a pace if they share a model, an address and an account. One account's limit, or a server that a
        caller chose, must not slow down others."""
        if self._pace is None or model is None:
            return None
        account = hashlib.sha256(f"{address or ''}\0{key or ''}".encode()).hexdigest()[:12]
        return CallPace(self._pace, f"{model[:200]} {account}", self._pace_stops_clock)

    async def _open_gate(self) -> Gate:
        async with self._starting:
            if self._gate is None:
                self._gate = await self._started.enter_async_context(Gate(self._retries, self._pace))
        return self._gate

    async def _server(self) -> ScriptedModels:
        async with self._starting:
            if self._scripted is None:
                self._scripted = await self._started.enter_async_context(ScriptedModels())
        return self._scripted

    async def __aenter__(self) -> Self:
        return self

    async def close(self) -> None:
        """Ends the gate and the scripted models. A further trial starts them again."""
        async with self._starting:
            self._gate = self._scripted = None
            await self._started.aclose()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _key_note(order: Order) -> str:
    return KEY_INSIDE + ("the job's own" if order.keys_are_the_jobs else "this installation's")


async def _replay(order: Order, secrets: list[str]) -> CallReplay | None:
    """Opens the record. Its name is removed, so that it is not saved as a file of this try."""
    if order.job.replay is None:
        return None
    if order.replay is None:  # never ask a provider instead
        raise SetupProblem(f"The record of trial {order.job.replay.trial} was not brought to this worker.")
    replay = await CallReplay.open(order.job.replay, order.replay, secrets)
    order.replay.unlink()
    return replay


def _env(order: Order) -> dict[str, str]:
    """The agent's variables without its keys, which stay outside."""
    keys = keys_for(order.agent.model or "")
    return {name: value for name, value in order.agent.env.items() if name not in keys}


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Some clients call a model's address by another name."""
    return {"api_base" if name == "base_url" else name: value for name, value in options.items()}


def _options(agent: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return terminus_options(options) if agent == "terminus-2" else dict(options)


def _says_it_calls_from_host(agent: str) -> bool:
    """Whether a class of the user's, named by its import path, calls its model from this process. It says so by
    ``calls_from_host = True``. What cannot be imported is refused when Harbor makes the agent."""
    module, colon, name = agent.partition(":")
    if not colon:
        return False
    try:
        return getattr(getattr(import_module(module), name), "calls_from_host", False) is True
    except Exception:  # the user's module may raise anything
        return False


def _first(named: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((named[name] for name in names if name in named), None)
