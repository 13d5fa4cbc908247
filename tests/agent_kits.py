"""Kits of tiny agents that tests make themselves, from a registry of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.agents.kits.fitting import FittedKit
from seatrial.agents.kits.recipes import Recipe
from seatrial.agents.kits.shelf import KitShelf, ReadyKit
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.settings import package_environment
from tests.package_registry import NODE_AGENT, PYTHON_AGENT, Registry
from tests.trials import test_cache

TINY_NODE = Recipe("tiny-node", "node", "tiny-node-agent", "tiny", preludes=("~/.nvm/nvm.sh",))
TINY_PYTHON = Recipe("tiny-python", "python", "tiny-python-agent", "tiny")
RECIPES = {recipe.agent: recipe for recipe in (TINY_NODE, TINY_PYTHON)}


def fill(registry: Registry, version: str = "1.0.0", **about: Any) -> None:
    registry.add_npm("tiny-node-agent", version, {"cli.js": NODE_AGENT}, bin={"tiny": "cli.js"}, **about)
    registry.add_wheel("tiny-python-agent", version, {"tiny_agent.py": PYTHON_AGENT}, {"tiny": "tiny_agent:main"})


def shelf_of(directory: Path, registry: Registry, limit_bytes: int = 0) -> KitShelf:
    environment = {**package_environment(), **registry.environment}
    return KitShelf(directory, environment, limit_bytes, RECIPES, test_cache() / "kit-runtimes")


class Harbors:
    """The part of Harbor's agent that a kit changes."""

    def __init__(self) -> None:
        self._version: str | None = None
        self.installed = 0

    async def install(self, environment: Any) -> None:
        self.installed += 1


async def put_into(sandbox: Sandbox, ready: ReadyKit) -> tuple[FittedKit, Harbors]:
    fitted, agent = FittedKit(RECIPES[ready.kit.agent], ready), Harbors()
    fitted.hand_to(agent)
    await agent.install(sandbox)
    return fitted, agent
