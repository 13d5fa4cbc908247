"""An agent of one's own, named by import path, with options, an environment and a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import ROOT, CommandLine
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox

_TEST = """printf 'green 3 int scripted/shell\\nLyon\\n' | cmp - /app/told.txt && reward=1 || reward=0
echo $reward > /logs/verifier/reward.txt"""


def test_it_gets_its_options_environment_and_model(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "told", test=_TEST.replace("scripted", "openai"))
    agent = ("-a", "tests.e2e.agents:Secretary", "-m", "scripted/shell")
    told = ("--ak", "colour=green", "--ak", "depth=3", "--ae", "TOWN=Lyon")
    [row] = cli.json("run", task, *agent, *told, PYTHONPATH=str(ROOT))["results"]
    assert (row["outcome"], row["agent"], row["model"]) == ("passed", agent[1], "scripted/shell")
    assert cli("trial", "files", "1", "agent/diary.txt").out.strip() == "Write 42 into /app/answer.txt."
    lock = cli.json("trial", "show", "1")["result"]["lock"]
    assert (lock["agent_version"], lock["options"]) == ("1.0", {"colour": "green", "depth": 3})

    [other] = cli.json("run", task, *agent, "--ak", "colour=red", PYTHONPATH=str(ROOT))["results"]
    assert other["outcome"] == "failed"


def test_one_that_calls_its_model_from_the_host_is_counted_by_the_gate(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "counted")
    agent = ("-a", "tests.e2e.agents:HostCaller", "-m", "scripted/give-up", "--trial-budget-calls", "5")
    [row] = cli.json("run", task, *agent, PYTHONPATH=str(ROOT))["results"]
    usage = cli.json("trial", "show", "1")["result"]["usage"]
    assert (row["outcome"], usage["model_calls"]) == ("passed", 1) and usage["output_tokens"] > 0


def test_an_option_that_it_refuses_is_named(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "told")
    agent = ("-a", "tests.e2e.agents:Secretary", "--ak", "depth=-1")
    [row] = cli.json("run", task, *agent, status=3, PYTHONPATH=str(ROOT))["results"]
    assert (row["outcome"], row["cause"], row["tries"]) == ("error", "agent", 1)
    assert row["message"] == "depth must not be negative"
    missing = cli("run", task, "-a", "tests.e2e.agents:Nobody", "--json", status=3, PYTHONPATH=str(ROOT))
    assert "Nobody" in missing.json()["results"][0]["message"]
