"""A trial is recorded, and run again from its record: without its model's server and without a key."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.scripted_models.scripts import Act, Script, View
from seatrial.scripted_models.server import ScriptedModels
from seatrial.settings import Settings
from seatrial.wiring import kits_of
from tests.agents.registry import PROOFS, Proof
from tests.command_line import SAMPLES, CommandLine
from tests.engine import Engine
from tests.engine_fixture import container_engine, run_dir

__all__ = ["container_engine", "run_dir"]

KEY = "sk-of-the-recorded-trial-0123"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY")
SAMPLE = SAMPLES / "answer-file"
NAME, CHANGED = "answer-file", "another-file"
ANSWER = "echo 42 > /app/answer.txt"
LOOKS = ("ls -l --full-time /app /var", "date", "mktemp -d")
"""What they print says when and where, so the next requests do."""
TERMINUS = Proof("terminus-2", "", "openai/gpt-4o", "chat", "Harbor")
CODEX = next(proof for proof in PROOFS if proof.agent == "codex")
PAIRS = 5
"""What a screen of terminus-2 shows depends on the moment. If that differs, another pair is tried."""
COUNTED = ("outcome", "rewards", "tests", "input_tokens", "output_tokens")


def types(commands: Sequence[str]) -> Script:
    """A model that types them, one in each turn."""

    def act(view: View) -> Act:
        left = [] if view.asked_to_confirm else [command for command in commands if not view.has_typed(command)]
        if not left:
            return Act("The answer is written.", done=True)
        return Act("Go on.", (left[0],), wait=2.0)

    return act


async def run(
    cli: CommandLine, *arguments: str | Path, proof: Proof, address: str, expect: int = 0, **environment: str
) -> dict[str, dict[str, Any]]:
    """The results by task, of a process of its own, while this one serves the model."""
    options = {"api_base": address, **({"version": proof.version} if proof.version else {}), **proof.options}
    chosen = [word for name, value in options.items() for word in ("--ak", f"{name}={value}")]
    chosen += ["-a", proof.agent, "-m", proof.model, "--timeout-multiplier", "4", "--json"]
    command = cli.fork("run", *arguments, *chosen, SEATRIAL_NETWORK_MODE="none", **environment)
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


async def recorded_and_replayed(
    cli: CommandLine, proof: Proof, where: Sequence[str], other: Path
) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """How many calls the model's server got, the recorded trial, and the results of its replays."""
    commands = (ANSWER,) if proof is TERMINUS else (*LOOKS, ANSWER)
    record, replay = (("-e", sandbox) for sandbox in where)
    async with ScriptedModels({proof.script_name: types(commands)}, key=KEY) as models:
        keys = dict.fromkeys(KEYS, KEY)
        told = await run(cli, SAMPLE, *record, "--record", "full", proof=proof, address=models.base_url, **keys)
    recorded = told[NAME]
    again = (*replay, "--replay", str(recorded["trial"]))
    return (
        models.calls,
        recorded,
        await run(cli, SAMPLE, other, *again, proof=proof, address=models.base_url, expect=3),
    )


async def prove(cli: CommandLine, proof: Proof, *where: str, pairs: int = 1) -> None:
    """Records on the first kind of sandbox, and replays on the second."""
    if proof.version:  # built before, because the first time takes minutes, and the command has less
        await kits_of(Settings(cache=cli.cache)).get(proof.agent, proof.version)
    other = changed(cli.directory / "changed")
    for _ in range(pairs):
        calls, recorded, found = await recorded_and_replayed(cli, proof, where, other)
        same, missed = found[NAME], found[CHANGED]
        assert recorded["outcome"] == "passed" and calls >= 2
        assert (missed["outcome"], missed["cause"], missed["replay"]["hits"]) == ("error", "replay", 0), missed
        assert re.search(r"First difference to its call 1, at (messages|input|contents)\[", missed["message"]), missed
        assert "Please: " in missed["message"], missed["message"]
        assert missed["tries"] == 1  # another try would miss, too
        if not same["replay"]["misses"]:
            break
        assert (same["outcome"], same["cause"]) == ("error", "replay")

    assert not same["replay"]["misses"], same["message"]
    assert {name: same[name] for name in COUNTED} == {name: recorded[name] for name in COUNTED}, same
    assert (same["cost_usd"], same["marks"]) == (0.0, ["replayed"])
    told = {"trial": recorded["trial"], "hits": calls, "misses": 0}
    assert {name: same["replay"][name] for name in told} == told
    shown = cli("trial", "show", str(same["trial"])).out
    assert f"of trial {recorded['trial']}: {calls} calls answered" in shown
    names = {file["path"] for file in cli.json("trial", "files", str(same["trial"]))}
    assert "calls.jsonl" in names and not any("replay" in name or "full" in name for name in names)


@pytest.mark.sandbox
@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.agent)
async def test_a_trial_runs_again_from_its_record(cli: CommandLine, proof: Proof) -> None:
    await prove(cli, proof, "oci", "oci")


@pytest.mark.long
@pytest.mark.sandbox
async def test_one_that_reads_a_screen_does_if_the_screen_is_the_same(cli: CommandLine) -> None:
    await prove(cli, TERMINUS, "oci", "oci", pairs=PAIRS)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.sandbox
@pytest.mark.parametrize("recorded_on", ["docker", "oci"])
async def test_it_does_in_a_container_engine(cli: CommandLine, container_engine: Engine, recorded_on: str) -> None:
    """Also if it was recorded elsewhere."""
    cli.environment.update(DOCKER_HOST=container_engine.host)
    await prove(cli, CODEX, recorded_on, "docker")
