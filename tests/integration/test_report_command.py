"""``seatrial report`` and ``seatrial compare`` as a user calls them, on a real store."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seatrial.cli.main import app
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome
from seatrial.errors import InvalidInput
from seatrial.settings import Settings
from seatrial.wiring import open_installation

TASKS = tuple(TaskRef(name=f"t{index:02}", digest=f"sha256:{index:064x}") for index in range(12))
AGENTS = (AgentSpec(name="terminus-2", model="gpt-x"), AgentSpec(name="oracle"))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A finished job: the oracle passes everything, terminus-2 every third task; one trial was lost to the sandbox."""
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return asyncio.run(_finished_job())


async def _finished_job() -> int:
    async with open_installation(Settings()) as installation:
        store, now = installation.store, installation.clock()
        spec = JobSpec(name="nightly", tasks=TASKS, agents=AGENTS, attempts=2)
        made = await store.jobs.create(spec, list(plan(spec)), now)
        for trial in await store.trials.claim("w", timedelta(seconds=60), 1000, now):
            passed = trial.agent == "oracle" or int(trial.task.name[1:]) % 3 == 0
            outcome = Outcome.PASSED if passed else Outcome.FAILED
            result = Result(
                outcome=outcome,
                rewards={"reward": float(passed)},
                seconds=2.0,
                usage=Usage(cached_tokens=5, cost_usd=0.5),
            )
            if (trial.agent, trial.task.name, trial.attempt) == ("terminus-2", "t01", 1):
                result = Result(outcome=Outcome.ERROR, cause=Cause.SANDBOX, seconds=2.0)
            await store.trials.finish(trial.id, trial.try_number, result, now)
        return made.id


def seatrial(*arguments: str, status: int = 0) -> str:
    ended = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert ended.exit_code == status, ended.output
    return ended.stdout


def test_a_report_in_json_is_one_object(job: int) -> None:
    content = json.loads(seatrial("report", str(job), "--json"))
    oracle, terminus = content["configurations"]
    assert (content["job"], content["name"], content["complete"]) == (job, "nightly", True)
    assert (terminus["label"], oracle["label"]) == ("terminus-2 / gpt-x", "oracle")
    assert terminus["leaderboard"]["value"] == pytest.approx(4 / 12)
    assert terminus["coverage"] == pytest.approx(23 / 24)
    assert terminus["counts"]["errors"] == {"sandbox": 1}
    assert terminus["spending"]["cost_usd"] == pytest.approx(11.5)
    assert terminus["spending"]["cached_tokens"] == 115
    assert oracle["leaderboard"]["value"] == 1.0


def test_a_report_for_people_has_both_intervals(job: int) -> None:
    text = seatrial("report", str(job))
    assert "job 1 (nightly): 48 trials: 32 passed, 15 failed, 1 error" in text
    assert "tasks as a sample: " in text
    assert "tasks fixed, run to run: " in text
    assert "at least 5 trials of every task" in text


def test_a_comparison_in_json_and_for_people(job: int) -> None:
    content = json.loads(seatrial("compare", f"{job}:terminus", f"{job}:oracle", "--json"))
    (found,) = content["comparisons"]
    assert found["a_minus_b"] == pytest.approx(-8 / 12)
    assert found["significance"]["p"] == pytest.approx(2 / 2**8)
    text = seatrial("compare", str(job))
    assert " ".join(text.split()).startswith(found["verdict"])
    assert "oracle is better than terminus-2 / gpt-x by 66.7 points" in found["verdict"]
    assert "t01" in text
    assert "t03" not in text
    assert "t03" in seatrial("compare", str(job), "--all")


def test_the_leaderboard_basis_counts_the_fault(job: int) -> None:
    content = json.loads(seatrial("compare", str(job), "--basis", "leaderboard", "--json"))
    assert content["comparisons"][0]["basis"] == "leaderboard"


def test_an_unknown_basis_is_refused(job: int) -> None:
    with pytest.raises(InvalidInput, match="leaderboard, valid"):
        seatrial("compare", str(job), "--basis", "mood")
