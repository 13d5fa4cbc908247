"""A trial is recorded, and run again from its record: without its model's server and without a key."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from seatrial.scripted_models.scripts import Act, View
from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import SAMPLES, CommandLine

KEY = "sk-of-the-recorded-trial-0123"
SAMPLE = SAMPLES / "answer-file"
NAME, CHANGED = "answer-file", "another-file"
COMMAND = "echo 42 > /app/answer.txt"
PAIRS = 5
"""What a screen of terminus-2 shows depends on the moment. If that differs, another pair is tried."""
COUNTED = ("outcome", "rewards", "tests", "input_tokens", "output_tokens")


def write(view: View) -> Act:
    if view.asked_to_confirm or view.has_typed(COMMAND):
        return Act("The answer is written.", done=True)
    return Act("Write the answer.", (COMMAND,), wait=2.0)


async def run(cli: CommandLine, *arguments: str | Path, agent: str, expect: int = 0) -> dict[str, dict[str, Any]]:
    """The results by task, of a process of its own, while this one serves the model."""
    model = ("-m", "openai/write")
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


async def recorded_and_replayed(cli: CommandLine, agent: str, other: Path) -> tuple[int, dict[str, Any], Any]:
    """How many calls the model's server got, the recorded trial, and the results of its replays."""
    env = cli.directory / ".env"
    async with ScriptedModels(scripts={"write": write}, key=KEY) as models:
        env.write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_API_BASE={models.base_url}\n")
        recorded = (await run(cli, SAMPLE, "--record", "full", agent=agent))[NAME]
    env.unlink()
    return (
        models.calls,
        recorded,
        await run(cli, SAMPLE, other, "--replay", str(recorded["trial"]), agent=agent, expect=3),
    )


@pytest.mark.sandbox
@pytest.mark.parametrize("agent", [pytest.param("terminus-2", marks=pytest.mark.long), "mini-swe-agent"])
async def test_a_trial_runs_again_from_its_record(cli: CommandLine, agent: str) -> None:
    other = changed(cli.directory / "changed")
    for _ in range(PAIRS):
        calls, recorded, found = await recorded_and_replayed(cli, agent, other)
        same, missed = found[NAME], found[CHANGED]
        assert recorded["outcome"] == "passed" and calls >= 2
        assert (missed["outcome"], missed["cause"], missed["replay"]["hits"]) == ("error", "replay", 0), missed
        assert "First difference to its call 1, at messages[" in missed["message"] and "Please: " in missed["message"]
        assert missed["tries"] == 1  # another try would miss, too
        if not same["replay"]["misses"]:
            break
        assert (same["outcome"], same["cause"]) == ("error", "replay")

    assert {name: same[name] for name in COUNTED} == {name: recorded[name] for name in COUNTED}, same
    assert (same["cost_usd"], same["marks"]) == (0.0, ["replayed"])
    told = {"trial": recorded["trial"], "hits": calls, "misses": 0}
    assert {name: same["replay"][name] for name in told} == told
    shown = cli("trial", "show", str(same["trial"])).out
    assert f"of trial {recorded['trial']}: {calls} calls answered" in shown
    names = {file["path"] for file in cli.json("trial", "files", str(same["trial"]))}
    assert "calls.jsonl" in names and not any("replay" in name or "full" in name for name in names)
