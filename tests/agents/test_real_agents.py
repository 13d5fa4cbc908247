"""Real agent programs, each in the daemonless sandbox without any network, through the gate, against a scripted model
that speaks the agent's own wire format over HTTP and decides each turn by what the agent sends."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seatrial.scripted_models.scripts import solve_read_the_screen
from seatrial.scripted_models.server import ScriptedModels
from seatrial.settings import Settings
from seatrial.wiring import kits_of
from tests.agents.registry import PROOFS, Proof
from tests.command_line import SAMPLES, CommandLine

pytestmark = pytest.mark.sandbox

KEY = "sk-canary-of-a-real-agent"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY")
SAMPLE = SAMPLES / "read-the-screen"

each_agent = pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.agent)


@dataclass(frozen=True)
class Ran:
    """The only trial of its home, ended."""

    trial: dict[str, Any]
    models: ScriptedModels
    cli: CommandLine

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.trial["result"]
        return found

    def file(self, name: str) -> str:
        return self.cli("trial", "files", "1", name).out

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file("calls.jsonl").splitlines()]


async def run(cli: CommandLine, proof: Proof, *flags: str, status: int = 0) -> Ran:
    # Built before, because the first time takes minutes, and the command has less.
    await kits_of(Settings(cache=cli.cache)).get(proof.agent, proof.version)
    async with ScriptedModels({proof.script_name: solve_read_the_screen}, key=KEY) as models:
        options = {"api_base": models.base_url, "version": proof.version, **proof.options}
        given = [word for name, value in options.items() for word in ("--ak", f"{name}={value}")]
        chosen = ("-a", proof.agent, "-m", proof.model, *given, "-e", "oci", "--timeout-multiplier", "4", *flags)
        environment = {**dict.fromkeys(KEYS, KEY), "SEATRIAL_NETWORK_MODE": "none"}
        await asyncio.to_thread(lambda: cli("run", SAMPLE, *chosen, status=status, **environment))
        shown = await asyncio.to_thread(lambda: cli.json("trial", "show", "1"))
    return Ran(shown, models, cli)


@each_agent
async def test_it_solves_a_sample_and_the_gate_counts_what_the_model_counted(cli: CommandLine, proof: Proof) -> None:
    ran = await run(cli, proof)
    result, models = ran.result, ran.models
    assert result["outcome"] == "passed", result
    assert result["lock"]["agent_version"] == proof.version and result["lock"]["agent_kit"]

    asked = [call for call in models.requests if call.fault is None]
    assert {call.format for call in asked} == {proof.format}
    assert len(asked) == models.calls >= 5, "each code was read from the screen before it was typed"
    named = {value for call in asked for name, value in call.headers.items() if value.startswith("sha256:")}
    assert named == {f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"}, "the key was added outside"

    usage, counted = result["usage"], models.counted
    assert (usage["model_calls"], usage["input_tokens"], usage["output_tokens"], usage["cached_tokens"] or 0) == (
        models.calls,
        counted.input_tokens,
        counted.output_tokens,
        counted.cached_tokens,
    )
    assert usage["cost_usd"] == pytest.approx(listed_cost(proof, models), rel=1e-6)
    assert sorted(call["streamed"] for call in ran.calls()) == sorted(call.streamed for call in asked)

    kept = [path for path in (cli.home / "blobs").rglob("*") if path.is_file()]
    assert kept and [path for path in kept if KEY.encode() in path.read_bytes()] == []
    if proof.has_trajectory:
        trajectory = json.loads(ran.file("agent/trajectory.json"))
        replies = re.findall(r"/app/reply\.sh (\d{6})", json.dumps(trajectory["steps"]))
        assert trajectory["agent"]["name"] == proof.agent and len(set(replies)) == 3, (
            "every code that was typed is there"
        )


@each_agent
async def test_one_that_is_refused_over_its_budget_ends_and_is_graded(cli: CommandLine, proof: Proof) -> None:
    ran = await run(cli, proof, "--trial-budget-calls", "2")
    result = ran.result
    assert (result["outcome"], result["rewards"]) == ("failed", {"reward": 0.0}), result
    assert "over_budget" in result["marks"] and "agent_timeout" not in result["marks"]
    assert ran.models.calls == result["usage"]["model_calls"] == 2
    refused = [call for call in ran.calls() if call["over_budget"]]
    assert 1 <= len(refused) <= 2, "it did not go on asking"


def listed_cost(proof: Proof, models: ScriptedModels) -> float:
    """What LiteLLM's list says for what the server counted."""
    found = find_spec("litellm")
    assert found is not None and found.origin is not None
    listed = json.loads(Path(found.origin).with_name("model_prices_and_context_window_backup.json").read_text())
    entry = listed.get(proof.model) or listed[proof.script_name]
    rate, cached_rate = entry["input_cost_per_token"], entry.get("cache_read_input_token_cost")
    counted = models.counted
    return float(
        (counted.input_tokens - counted.cached_tokens) * rate
        + counted.cached_tokens * (rate if cached_rate is None else cached_rate)
        + counted.output_tokens * entry["output_cost_per_token"]
    )
