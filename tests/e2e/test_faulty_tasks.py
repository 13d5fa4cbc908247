"""What goes wrong inside a task or beside it: each trial ends with the right outcome, cause and marks.

All of them run as one job, as a person's mixed bag would; what is ours to blame is never scored as a failed attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.task_files import DOCKERFILE, SOLVE, write_task

pytestmark = pytest.mark.sandbox

SECRET = "canary-5f0c1b9e"
_GIVE = "echo {} > /logs/verifier/reward.txt"
_DEFAULT = f'if [ "$TOLD" = harmless ]; then {_GIVE.format(1)}; else {_GIVE.format(0)}; fi'


class Bag:
    """The job's summary and the home that holds it."""

    def __init__(self, cli: CommandLine, folder: Path) -> None:
        self.cli = cli
        options = folder.parent / "job.yaml"
        options.write_text("retry: {max_attempts: 2, backoff_sec: 0.1}\n")
        self.done = cli("run", folder, "-c", options, "-n", "8", "--json", status=3, SOME_SECRET=SECRET)
        self.summary: dict[str, Any] = self.done.json()

    def result(self, task: str) -> dict[str, Any]:
        [row] = [row for row in self.summary["results"] if row["task"] == task]
        return dict(row)

    def verdict(self, task: str) -> tuple[Any, ...]:
        row = self.result(task)
        return row["outcome"], row["cause"], row["reward"], row["marks"]


def fill(folder: Path) -> None:
    write_task(folder, "sound")
    write_task(folder, "half", test=_GIVE.format(0.5))
    write_task(folder, "no-image", dockerfile=f"{DOCKERFILE}RUN echo no luck today && exit 7\n")
    write_task(folder, "no-reward", test="echo graded")
    write_task(folder, "nan-reward", test=_GIVE.format("NaN"))
    write_task(folder, "word-reward", test=_GIVE.format("plenty"))
    write_task(folder, "slow-tests", test="sleep 600", verifier_timeout=1.0)
    write_task(folder, "late-but-right", solve=f"{SOLVE}\nsleep 600", agent_timeout=30.0)
    write_task(folder, "late-and-wrong", solve=f"sleep 600\n{SOLVE}", agent_timeout=2.0)
    write_task(folder, "wants-secret", more='[environment.env]\nTOLD = "${SOME_SECRET}"')
    write_task(folder, "tests-want-secret", more='[verifier.env]\nTOLD = "${SOME_SECRET}"')
    write_task(folder, "has-default", test=_DEFAULT, more='[environment.env]\nTOLD = "${SOME_SECRET:-harmless}"')
    write_task(folder, "tests-have-default", test=_DEFAULT, more='[verifier.env]\nTOLD = "${SOME_SECRET:-harmless}"')
    write_task(folder, "looks-around", solve="env > /app/env.txt", test=f"cat /app/env.txt; env; {_GIVE.format(1)}")


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[Bag]:
    place = tmp_path_factory.mktemp("bag")
    fill(place / "tasks")
    with CommandLine(place / "home", image_cache, place) as cli:
        yield Bag(cli, place / "tasks")


def test_a_reward_stands_whatever_its_value(bag: Bag) -> None:
    assert bag.verdict("sound") == ("passed", None, 1.0, [])
    assert bag.verdict("half") == ("failed", None, 0.5, [])


def test_an_image_that_cannot_be_built_is_an_image_error_and_tried_again(bag: Bag) -> None:
    assert bag.verdict("no-image") == ("error", "image", None, [])
    row = bag.result("no-image")
    assert row["tries"] == 2
    assert "no luck today" in bag.cli("trial", "logs", str(row["trial"])).out


@pytest.mark.parametrize("task", ["no-reward", "nan-reward", "word-reward", "slow-tests"])
def test_no_valid_reward_is_a_verifier_error(bag: Bag, task: str) -> None:
    assert bag.verdict(task) == ("error", "verifier", None, [])
    assert bag.result(task)["tries"] == 1
    assert bag.result(task)["message"]
    assert str(bag.cli.home) not in bag.result(task)["message"], "where this machine had the files is nobody's business"


def test_an_agent_out_of_time_is_marked_and_still_graded(bag: Bag) -> None:
    assert bag.verdict("late-but-right") == ("passed", None, 1.0, ["agent_timeout"])
    assert bag.verdict("late-and-wrong") == ("failed", None, 0.0, ["agent_timeout"])


def test_the_environment_of_the_process_never_reaches_a_task(bag: Bag) -> None:
    outcome, cause, *_ = bag.verdict("wants-secret")
    assert (outcome, cause) == ("error", "sandbox")
    assert "SOME_SECRET" in bag.result("wants-secret")["message"]
    assert "or a default: ${NAME:-value}" in bag.result("wants-secret")["message"]
    outcome, cause, *_ = bag.verdict("tests-want-secret")
    assert (outcome, cause) == ("error", "verifier")
    assert "SOME_SECRET" in bag.result("tests-want-secret")["message"]
    assert bag.verdict("has-default") == ("passed", None, 1.0, [])
    assert bag.verdict("tests-have-default") == ("passed", None, 1.0, [])
    assert "PATH=" in bag.cli("trial", "logs", str(bag.result("looks-around")["trial"])).out
    assert [path for path in bag.cli.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []


def test_errors_are_told_by_cause_with_their_sentences(bag: Bag) -> None:
    summary = bag.summary
    assert (summary["passed"], summary["failed"], summary["errors"]) == (5, 2, 7)
    shown = bag.cli("trial", "show", str(bag.result("no-image")["trial"])).out
    assert "earlier try 1: error (image)" in shown
    report = bag.cli.json("report", str(summary["job"]))
    assert report["configurations"][0]["counts"]["errors"] == {"image": 1, "sandbox": 1, "verifier": 5}


def test_limits_stretch_and_the_whole_trial_has_one(cli: CommandLine, tmp_path: Path) -> None:
    task = write_task(tmp_path, "slow", solve=f"sleep 3\n{SOLVE}", agent_timeout=1.5)
    [stretched] = cli.json("run", task, "--timeout-multiplier", "200")["results"]
    assert (stretched["outcome"], stretched["marks"]) == ("passed", [])
    endless = write_task(tmp_path, "endless", solve="sleep 600")
    limited = cli.json("run", endless, "--timeout-multiplier", "20", "--trial-limit", "60", status=3)
    [row] = limited["results"]
    assert (row["outcome"], row["cause"], row["tries"]) == ("error", "agent", 1)
    assert row["message"].startswith("The whole trial took longer than its limit of 60 s")
    assert cli.sandboxes() == set()
