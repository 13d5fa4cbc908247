"""Says what is odd about a request that can run: an option without effect, an unknown model.

Called by ``seatrial run`` and the estimate of the API. Refusals are elsewhere, in ``submit``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from seatrial.domain.agents.catalogue import (
    ADDRESSED_PROVIDERS,
    MODELS,
    USUAL_PROVIDERS,
    keys_for,
    needs_model,
    provider_of,
    takes_model,
)
from seatrial.domain.job import AgentSpec
from seatrial.domain.likeness import did_you_mean
from seatrial.engine.jobs.request import JobParameters

_OWN_NAMES = ADDRESSED_PROVIDERS - USUAL_PROVIDERS
"""Providers whose models have the names that their operator gave them."""


def notices(
    parameters: JobParameters, agents: Sequence[AgentSpec], listed_models: Callable[[], Collection[str]]
) -> list[str]:
    """``agents`` are the configurations of the request. ``listed_models`` gives the names that LiteLLM lists."""
    return [*_without_effect(parameters), *_unknown_models(agents, listed_models)]


def _without_effect(parameters: JobParameters) -> Iterator[str]:
    named = [agent.name for agent in parameters.agents] or ["oracle"]
    who = " and ".join(dict.fromkeys(named))
    take = "takes" if len(set(named)) == 1 else "take"
    if not any(map(takes_model, named)):
        if parameters.models:
            yield f"The model has no effect: {who} {take} none."
        if parameters.options:
            yield f"Agent options have no effect: {who} {take} none."
        if parameters.budget:
            yield f"The budget has no effect: {who} {take} no model."
    elif parameters.models and all(agent.model or not takes_model(agent.name) for agent in parameters.agents):
        yield f"The model {parameters.models[0]} has no effect: every agent has one of its own."
    for agent in parameters.agents:
        if agent.model and not takes_model(agent.name):
            yield f"The model {agent.model} has no effect: {agent.name} takes none."
    if parameters.env and set(named) == {"nop"}:
        yield "Agent variables have no effect: nop runs nothing."
    if parameters.selection.seed and parameters.selection.sample is None:
        yield "The seed has no effect without a sample."


def _unknown_models(agents: Sequence[AgentSpec], listed: Callable[[], Collection[str]]) -> Iterator[str]:
    for agent in agents:
        if agent.model is None or not needs_model(agent.name) or "api_base" in agent.options:
            continue
        provider = provider_of(agent.model)
        if provider in _OWN_NAMES or agent.model in {model.id for model in MODELS}:
            continue
        known = listed()
        if provider == "scripted":
            near = did_you_mean(agent.model, [model.id for model in MODELS])
            yield f"There is no scripted model {agent.model}. {near}".rstrip()
        elif provider and not _is_provider(provider, known):
            near = did_you_mean(provider, {*USUAL_PROVIDERS, *ADDRESSED_PROVIDERS, *_providers(known)})
            yield f"LiteLLM does not know the provider {provider!r} of the model {agent.model}. {near}".rstrip()
        elif _bare(agent.model) not in {_bare(name) for name in known}:
            near = did_you_mean(agent.model, [*(model.id for model in MODELS), *_named_fully(known, provider)])
            yield f"LiteLLM does not list the model {agent.model}. {near or 'Check its name.'}"


def _bare(model: str) -> str:
    """The name without providers, which resell each other's models, and with one spelling of versions."""
    return model.rpartition("/")[2].lower().replace(".", "-")


def _is_provider(name: str, known: Collection[str]) -> bool:
    special = keys_for(f"{name}/x") != (f"{name.upper().replace('-', '_')}_API_KEY",)
    return special or name in USUAL_PROVIDERS or name in ADDRESSED_PROVIDERS or name in _providers(known)


def _providers(known: Collection[str]) -> set[str]:
    return {head for head, slash, _ in (name.partition("/") for name in known) if slash}


def _named_fully(known: Collection[str], provider: str) -> list[str]:
    """The listed names with their provider in front, as people write them."""
    return [name if name.startswith(f"{provider}/") else f"{provider}/{name}" for name in known if provider]
