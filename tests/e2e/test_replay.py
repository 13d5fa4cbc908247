"""A trial is recorded, and run again from its record: without its model's server and without a key."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import SAMPLES, CommandLine

KEY = "sk-of-the-recorded-trial-0123"
SAMPLE = SAMPLES / "read-the-screen"
COUNTED = ("outcome", "rewards", "tests", "input_tokens", "output_tokens")


async def run(cli: CommandLine, task: Path, *options: str, agent: str, expect: int = 0) -> dict[str, Any]:
    """One trial of this task, in a process of its own, while this one serves the model."""
    model = ("-m", "openai/solve-read-the-screen")
    command = cli.start("run", task, "-a", agent, *model, "--sandbox", "oci", "--json", *options)
    ended = await asyncio.to_thread(command.wait, 900.0)  # three runs of a whole agent, beside a busy machine
    assert ended.status == expect, f"{ended.out}\n{ended.err}"
    (trial,) = ended.json()["results"]
    return dict(trial)


@pytest.mark.sandbox
@pytest.mark.parametrize("agent", ["terminus-2", pytest.param("mini-swe-agent", marks=pytest.mark.long)])
async def test_a_trial_runs_again_from_its_record(cli: CommandLine, agent: str) -> None:
    async with ScriptedModels(key=KEY) as models:
        (cli.directory / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_API_BASE={models.base_url}\n")
        recorded = await run(cli, SAMPLE, "--record", "full", agent=agent)
    (cli.directory / ".env").unlink()
    assert recorded["outcome"] == "passed" and models.calls >= 5

    replayed = await run(cli, SAMPLE, "--replay", str(recorded["trial"]), agent=agent)
    assert {name: replayed[name] for name in COUNTED} == {name: recorded[name] for name in COUNTED}
    assert (replayed["cost_usd"], replayed["marks"]) == (0.0, ["replayed"])
    told = {"trial": recorded["trial"], "hits": models.calls, "misses": 0}
    assert {name: replayed["replay"][name] for name in told} == told
    assert (
        f"of trial {recorded['trial']}: {models.calls} calls answered"
        in cli("trial", "show", str(replayed["trial"])).out
    )

    changed = shutil.copytree(SAMPLE, cli.directory / "changed")
    instruction = changed / "instruction.md"
    instruction.write_text("Please, " + instruction.read_text())
    missed = await run(cli, changed, "--replay", str(recorded["trial"]), agent=agent, expect=3)
    assert (missed["outcome"], missed["cause"], missed["replay"]["hits"]) == ("error", "replay", 0)
    assert "First difference to its call 1, at messages[" in missed["message"] and "Please, " in missed["message"]
    assert missed["tries"] == 1  # another try would miss, too

    names = {file["path"] for file in cli.json("trial", "files", str(replayed["trial"]))}
    assert "calls.jsonl" in names and not any("replay" in name or "full" in name for name in names)
