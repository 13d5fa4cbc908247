"""A job as the lines that start it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from seatrial.cli.backend.request import read_request
from seatrial.domain.agents.catalogue import takes_model
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.model_calls.record import Record, ReplayMiss
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.task import TaskSelection
from seatrial.engine.jobs.command_line import curl_line, run_line
from seatrial.engine.jobs.request import AgentParameters, JobParameters, refuse_keys
from seatrial.errors import InvalidInput


def test_flags_say_what_they_can() -> None:
    wish = JobParameters(
        dataset="tb@2",
        agents=(AgentParameters(name="oracle"), AgentParameters(name="terminus-2")),
        models=("scripted/shell",),
        attempts=3,
        selection=TaskSelection(exclude=("slow *",), limit=5),
        name="it's mine",
    )
    line = run_line(wish, (), wish.matrix(takes_model))
    assert shlex.split(line) == [
        *("seatrial", "run", "-d", "tb@2", "-a", "oracle", "-a", "terminus-2", "-m", "scripted/shell"),
        *("-x", "slow *", "-l", "5", "-k", "3", "--name", "it's mine"),
    ]


def test_budgets_are_flags() -> None:
    wish = JobParameters(budget=Budget(job=Cap(dollars=2.5, tokens=9000), trial=Cap(calls=7)))
    line = run_line(wish, ("hello",), wish.matrix(takes_model))
    assert shlex.split(line) == [
        *("seatrial", "run", "-t", "hello", "-a", "oracle"),
        *("--budget-usd", "2.5", "--budget-tokens", "9000", "--trial-budget-calls", "7"),
    ]


@pytest.mark.parametrize(
    ("miss", "words"), [(ReplayMiss.ERROR, ()), (ReplayMiss.LIVE, ("--replay-miss", "live"))], ids=["error", "live"]
)
def test_records_and_replays_are_flags(miss: ReplayMiss, words: tuple[str, ...]) -> None:
    wish = JobParameters(record=Record.FULL, replay=Replay(trial=7, miss=miss))
    line = run_line(wish, ("hello",), wish.matrix(takes_model))
    assert shlex.split(line) == [
        *("seatrial", "run", "-t", "hello", "-a", "oracle", "--record", "full", "--replay", "7", *words)
    ]


def test_what_flags_cannot_say_goes_into_a_job_file_that_reads_the_same(tmp_path: Path) -> None:
    wish = JobParameters(
        agents=(
            AgentParameters(name="terminus-2", model="scripted/shell", options={"temperature": 0.2}),
            AgentParameters(name="terminus-2", model="scripted/give-up"),
        ),
        labels={"team": "red"},
    )
    line = run_line(wish, ("sha256:1",), wish.matrix(takes_model))
    head, _, rest = line.partition("\n")
    assert head == "seatrial run -c /dev/stdin <<'EOF'"
    file = tmp_path / "job.yaml"
    file.write_text(rest.removesuffix("EOF"))
    read = read_request({}, file)
    assert read.library == ("sha256:1",)
    assert read.matrix(takes_model) == wish.matrix(takes_model)
    assert read.labels == wish.labels


def test_curl_sends_only_what_was_asked_for() -> None:
    words = shlex.split(curl_line("http://x/api/v1/jobs", JobParameters(attempts=2, name="a 'b'")))
    assert words[3] == "http://x/api/v1/jobs"
    assert json.loads(words[-1]) == {"attempts": 2, "name": "a 'b'"}


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "api_key", "GITHUB_TOKEN", "my_secret", "DB_PASSWORD"])
def test_keys_stay_out_of_descriptions(name: str) -> None:
    for wish, field in (
        (JobParameters(env={name: "x"}), "env"),
        (
            JobParameters(agents=(AgentParameters(name="a"), AgentParameters(name="b", options={name: "x"}))),
            "agents.1.options",
        ),
    ):
        with pytest.raises(InvalidInput) as refused:
            refuse_keys(wish)
        assert refused.value.field == field
    refuse_keys(JobParameters(env={"MAX_TOKENS": "10", "KEYBOARD": "de"}, options={"temperature": 0.2}))
