"""Agents, models and sandboxes."""

from __future__ import annotations

from seatrial.domain.agents.catalogue import Agent
from seatrial.shapes.answers import Shape


class AgentItem(Agent):
    takes_model: bool
    """Whether the agent uses the job's models."""


class AgentList(Shape):
    items: list[AgentItem]


class ModelItem(Shape):
    id: str
    """LiteLLM's name: `provider/model`. Any other LiteLLM name works too."""
    name: str
    provider: str
    keys: list[str]
    """Environment variables; one of them must be set. Empty for models without a key."""
    ready: bool
    """Whether the installation has a key for it, or it needs none."""


class ModelList(Shape):
    items: list[ModelItem]


class SandboxItem(Shape):
    name: str
    description: str
    default: bool
    """Whether `auto` selects it here."""


class SandboxList(Shape):
    items: list[SandboxItem]
