"""Agents inside a docker sandbox and their model: led to it where the sandbox can be entered, else refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seatrial.agents.inside import NO_KEY, call_through_gate
from seatrial.errors import SetupProblem
from seatrial.scripted_models.server import ScriptedModels
from tests.gate_doors import route, way_inside
from tests.integration.engine.test_docker import Bench, bench, elsewhere

__all__ = ["bench"]

pytestmark = pytest.mark.engine

KEY = "sk-canary-docker-gate"
ASK = """
address=${OPENAI_BASE_URL#http://}; place=${address%%/*}
exec 3<>/dev/tcp/${place%:*}/${place#*:} || exit 1
printf 'GET /v1/models HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3
head -n 1 <&3; echo $OPENAI_API_KEY; exec 3<>/dev/tcp/${MODEL#http://} 2>/dev/null || echo nothing else
"""


@dataclass
class AskingAgent:
    """Asks its model from inside, as an installed agent does."""

    said: list[str] = field(default_factory=list)
    _extra_env: dict[str, str] = field(default_factory=dict)

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        model = instruction.removesuffix("/v1").replace(":", "/").replace("http///", "")
        self.said += ((await environment.exec(ASK, env={"MODEL": model})).stdout or "").split("\n")


async def test_agent_inside_reaches_its_model_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    agent, sandbox = AskingAgent(), bench.sandbox()
    await sandbox.start(force_build=False)
    try:
        async with ScriptedModels(key=KEY) as models, way_inside(tmp_path, route(models.base_url, key=KEY)) as way:
            call_through_gate(agent, way)
            await agent.run(instruction=models.base_url, environment=sandbox, context=None)
    finally:
        await sandbox.stop(delete=True)
    assert agent.said[:3] == ["HTTP/1.1 200 OK\r", NO_KEY, "nothing else"]


async def test_sandbox_that_cannot_be_entered_is_said(bench: Bench, tmp_path: Path) -> None:
    agent, sandbox = AskingAgent(), bench.sandbox(is_local=elsewhere)
    await sandbox.start(force_build=False)
    try:
        async with way_inside(tmp_path, route("http://127.0.0.1:9/v1")) as way:
            call_through_gate(agent, way)
            with pytest.raises(SetupProblem, match="cannot be entered") as refusal:
                await agent.run(instruction="", environment=sandbox, context=None)
        assert "--sandbox oci" in refusal.value.fix
    finally:
        await sandbox.stop(delete=True)
    assert agent.said == []
