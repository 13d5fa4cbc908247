"""mini-swe-agent from its kit, for the stock ``harbor`` CLI and for sandboxes that are not ours.

Harbor's own class installs it from the internet inside the sandbox, which is slow and fails in offline tasks. The kit
is built once on this machine (which needs a package index then) and lent or copied to each sandbox. The command, the
options and the trajectory are Harbor's: ``-a seatrial.agents.mini_swe_agent:OfflineMiniSweAgent``.
"""

from __future__ import annotations

from typing import override

from harbor.agents.installed.mini_swe_agent import MiniSweAgent
from harbor.environments.base import BaseEnvironment

from seatrial.agents.kits.fitting import FittedKit
from seatrial.agents.kits.recipes import RECIPES
from seatrial.agents.kits.shelf import KitShelf
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.settings import Settings, package_environment

_RECIPE = RECIPES["mini-swe-agent"]


class OfflineMiniSweAgent(MiniSweAgent):
    """Harbor's mini-swe-agent, installed from this machine."""

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        options = environment.options if isinstance(environment, Sandbox) else SandboxOptions.of(Settings())
        shelf = KitShelf(options.kits_dir, package_environment())
        ready = await shelf.get(_RECIPE.agent, self.version())
        with shelf.hold(ready):
            await FittedKit(_RECIPE, ready, is_copied=True).put_into(environment)
        self._version = ready.kit.version
