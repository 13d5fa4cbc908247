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
NAME, CHANGED = "seatrial/read-the-screen", "seatrial/read-another-screen"
COUNTED = ("outcome", "rewards", "tests", "input_tokens", "output_tokens")


async def run(cli: CommandLine, *arguments: str | Path, agent: str, expect: int = 0) -> dict[str, dict[str, Any]]:
    """The results by task, of a process of its own, while this one serves the model."""
    model = ("-m", "openai/solve-read-the-screen")
    command = cli.start("run", *arguments, "-a", agent, *model, "--sandbox", "oci", "--json")
    ended = await asyncio.to_thread(command.wait, 900.0)
    assert ended.status == expect, f"{ended.out}\n{ended.err}"
    return {each["task"]: each for each in ended.json()["results"]}


def changed(folder: Path) -> Path:
    """The sample under another name, with another instruction."""
    shutil.copytree(SAMPLE, folder)
    for name, old, new in (("task.toml", NAME, CHANGED), ("instruction.md", "", "Please: ")):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(old, new, 1))
    return folder


@pytest.mark.sandbox
@pytest.mark.parametrize("agent", ["terminus-2", pytest.param("mini-swe-agent", marks=pytest.mark.long)])
async def test_a_trial_runs_again_from_its_record(cli: CommandLine, agent: str) -> None:
    async with ScriptedModels(key=KEY) as models:
        (cli.directory / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_API_BASE={models.base_url}\n")
        recorded = (await run(cli, SAMPLE, "--record", "full", agent=agent))[NAME]
    (cli.directory / ".env").unlink()
    assert recorded["outcome"] == "passed" and models.calls >= 5

    other = changed(cli.directory / "changed")
    found = await run(cli, SAMPLE, other, "--replay", str(recorded["trial"]), agent=agent, expect=3)
    same, missed = found[NAME], found[CHANGED]
    assert {name: same[name] for name in COUNTED} == {name: recorded[name] for name in COUNTED}, same
    assert (same["cost_usd"], same["marks"]) == (0.0, ["replayed"])
    told = {"trial": recorded["trial"], "hits": models.calls, "misses": 0}
    assert {name: same["replay"][name] for name in told} == told
    shown = cli("trial", "show", str(same["trial"])).out
    assert f"of trial {recorded['trial']}: {models.calls} calls answered" in shown
    names = {file["path"] for file in cli.json("trial", "files", str(same["trial"]))}
    assert "calls.jsonl" in names and not any("replay" in name or "full" in name for name in names)

    assert (missed["outcome"], missed["cause"], missed["replay"]["hits"]) == ("error", "replay", 0), missed
    assert "First difference to its call 1, at messages[" in missed["message"] and "Please: " in missed["message"]
    assert missed["tries"] == 1  # another try would miss, too
