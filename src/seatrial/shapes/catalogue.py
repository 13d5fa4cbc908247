"""What can be named in a job."""

from __future__ import annotations

from seatrial.domain.catalogue import Agent
from seatrial.shapes.page import Shape


class AgentItem(Agent):
    takes_model: bool
    """Whether models of the job go to it at all."""


class AgentList(Shape):
    items: list[AgentItem]


class ModelItem(Shape):
    id: str
    """LiteLLM's name: `provider/model`. Any other LiteLLM name works as well."""
    name: str
    provider: str
    keys: list[str]
    """Any of these has to be set; empty for models that need no key."""
    ready: bool
    """Whether the installation has a key for it, or it needs none."""


class ModelList(Shape):
    items: list[ModelItem]


class SandboxItem(Shape):
    name: str
    description: str
    default: bool
    """What `auto` stands for here."""


class SandboxList(Shape):
    items: list[SandboxItem]
