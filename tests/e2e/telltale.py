"""An agent that tells its key to everybody: into the sandbox, its log, its output and, at the end, its error.

Named by import path in tests: ``tests.e2e.telltale:Telltale``. Like any agent that is installed into the sandbox it has
the provider's key in its environment; what it does with that is what no agent should.
"""

from __future__ import annotations

from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

_NAME = "OPENROUTER_API_KEY"


class Telltale(BaseAgent):
    def __init__(self, *arguments: Any, fails: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._fails = fails

    @staticmethod
    def name() -> str:
        return "telltale"

    def version(self) -> str:
        return "1.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        key = self.extra_env.get(_NAME, "")
        assert key, "it was given no key to tell"
        await environment.exec(f'echo "${_NAME}" > /app/told.txt; env', env=self.extra_env)
        await environment.exec("echo 42 > /app/answer.txt")
        (self.logs_dir / "told.txt").write_text(f"length {len(key)}\n{key}\n")
        self.logger.info("My key is %s.", key)
        context.metadata = {"told": key}
        if self._fails:
            raise RuntimeError(f"cannot go on with {key}")
