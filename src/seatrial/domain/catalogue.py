"""Agents and models that can be named, known without importing Harbor or LiteLLM."""

from __future__ import annotations

from seatrial.domain.frozen import Frozen


class Agent(Frozen):
    name: str
    description: str
    needs_model: bool = True
    runs_on_host: bool = False


class Model(Frozen):
    id: str
    name: str
    provider: str


AGENTS: tuple[Agent, ...] = (
    Agent(name="nop", description="Does nothing.", needs_model=False, runs_on_host=True),
    Agent(name="oracle", description="Runs the task's own solution.", needs_model=False, runs_on_host=True),
    Agent(name="terminus-2", description="Harbor's own agent; drives a terminal.", runs_on_host=True),
)
MODELS: tuple[Model, ...] = ()


def agent_names() -> tuple[str, ...]:
    return tuple(agent.name for agent in AGENTS)


def needs_model(agent: str) -> bool:
    return all(known.needs_model for known in AGENTS if known.name == agent)


def runs_on_host(agent: str) -> bool:
    return any(known.runs_on_host for known in AGENTS if known.name == agent)


def keys_for(model: str) -> tuple[str, ...]:
    """Environment names, any of which has to be set for this model."""
    provider = model.partition("/")[0]
    return () if provider == "scripted" else (f"{provider.upper()}_API_KEY",)
