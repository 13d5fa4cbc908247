"""Agents, models and sandboxes that a job can name. Does not import Harbor or a model client."""

from __future__ import annotations

from functools import cache

from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.agents.catalogue import AGENTS, MODELS, keys_for, takes_model
from seatrial.shapes.catalogue import AgentItem, AgentList, ModelItem, ModelList, SandboxItem, SandboxList

router = native_router("", "catalogue")
_SANDBOXES = {
    "auto": "The best one that works on this machine.",
    "oci": "Seatrial's own containers, without a daemon.",
    "docker": "Docker or Podman containers.",
}


@router.get("/agents", responses=errors())
async def list_agents() -> AgentList:
    """Lists the agents. Admins may also use their own by import path, `pkg.mod:Class`."""
    return _agents()


@cache
def _agents() -> AgentList:
    """Cached: it does not change while the program runs."""
    items = [AgentItem(**agent.model_dump(), takes_model=takes_model(agent.name)) for agent in AGENTS]
    return AgentList(items=items)


@router.get("/models", responses=errors())
async def list_models(service: ServiceDep) -> ModelList:
    """A selection of models for menus."""
    there = await service.installation.keys.names()
    items = []
    for model in MODELS:
        keys = keys_for(model.id)
        ready = not keys or bool(there.intersection(keys))
        items.append(ModelItem(id=model.id, name=model.name, provider=model.provider, keys=list(keys), ready=ready))
    return ModelList(items=items)


@router.get("/sandboxes", responses=errors())
async def list_sandboxes(service: ServiceDep) -> SandboxList:
    """Lists the sandboxes. Harbor's own environments are named `harbor:<name>`."""
    default = service.installation.settings.sandbox
    known = dict(_SANDBOXES) if default in _SANDBOXES else {**_SANDBOXES, default: "The default of this installation."}
    return SandboxList(
        items=[
            SandboxItem(name=name, description=description, default=name == default)
            for name, description in known.items()
        ]
    )
