"""Agents know how much time and budget they have: one of one's own in its sandbox, terminus-2 from its instruction."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from seatrial.scripted_models.scripts import text_of
from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import ROOT, SAMPLES, CommandLine

pytestmark = pytest.mark.sandbox

SAMPLE = str(SAMPLES / "read-the-screen")  # gives its agent 300 s
BUDGET = ("--trial-budget-calls", "7", "--budget-usd", "2.5", "--trial-budget-tokens", "1000")


def moment(text: str) -> datetime:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    return datetime.fromisoformat(text)


def test_they_are_in_the_sandbox_and_in_the_instruction_if_the_job_asks(cli: CommandLine) -> None:
    began = datetime.now(UTC)
    agent = ("-a", "tests.e2e.agents:Reader", "-m", "scripted/give-up", "-e", "oci", *BUDGET)
    cli("run", SAMPLE, *agent, PYTHONPATH=str(ROOT))
    cli("run", SAMPLE, *agent, "--tell-limits", PYTHONPATH=str(ROOT))
    files = {
        (trial, name): cli("trial", "files", trial, f"agent/{name}.txt").out
        for trial in ("1", "2")
        for name in ("told", "instruction", "changed")
    }
    deadline, _, document = files["1", "told"].partition("\n")
    told = json.loads(document)
    assert (told["calls_left"], told["tokens_left"], told["usd_left"]) == (7, 1000, 2.5)
    assert 0 < told["seconds_left"] <= 300
    assert began <= moment(deadline) - timedelta(seconds=280) and moment(told["deadline"]) >= moment(told["at"])
    assert files["1", "changed"].strip() != "0", "it is read-only, even for root"
    assert "You have" not in files["1", "instruction"]
    assert "You have 5 minutes for this task, until 20" in files["2", "instruction"]
    assert "You may spend at most $2.5, 1,000 tokens and 7 calls on your model." in files["2", "instruction"]


async def test_an_agent_on_the_host_reads_them_in_its_instruction(cli: CommandLine) -> None:
    async with ScriptedModels(key="sk-canary") as models:
        agent = ("-a", "terminus-2", "-m", "openai/give-up", "--ak", f"api_base={models.base_url}", "-e", "oci")
        run = ("run", SAMPLE, *agent, "--tell-limits", "--trial-limit", "200", "--trial-budget-calls", "9")
        await asyncio.to_thread(lambda: cli(*run, OPENAI_API_KEY="sk-canary"))
    [prompt] = [text_of(message) for message in models.requests[0].body["messages"] if message["role"] == "user"]
    assert re.search(r"You have ([23] minutes|\d+ seconds) for this task, until 20", prompt), (
        "the whole trial's end is first"
    )
    assert "You may spend at most 9 calls on your model. The file /opt/seatrial/limits/limits.json" in prompt
