"""``seatrial --server URL``: the same commands, the same output, and nothing of it on this machine."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT, SAMPLES, CommandLine, Done
from tests.running_service import RunningService
from tests.task_files import write_task
from tests.waiting import until

pytestmark = pytest.mark.sandbox
TASK = SAMPLES / "answer-file"


@dataclass(frozen=True)
class Remote:
    """The command line of somebody whose work is done by a service elsewhere."""

    cli: CommandLine
    up: RunningService

    def __call__(self, *arguments: str | Path, status: int = 0, **environment: str) -> Done:
        return self.cli("--server", self.up.url, *arguments, status=status, **environment)

    def json(self, *arguments: str | Path, status: int = 0) -> Any:
        return self(*arguments, "--json", status=status).json()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[CommandLine]:
    place = tmp_path_factory.mktemp("service")
    with CommandLine(place / "home", image_cache, place) as service:
        yield service


@pytest.fixture(scope="module")
def remote(service: CommandLine, tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[Remote]:
    service.environment.update(PYTHONPATH=str(ROOT), SEATRIAL_ALLOWED_AGENTS="tests.e2e.agents:Patient")
    up = RunningService.start(service)
    up.until_ready()
    place = tmp_path_factory.mktemp("backend")
    with CommandLine(place / "home", image_cache, place) as cli:
        yield Remote(cli, up)


def test_a_run_is_told_as_if_it_were_here(remote: Remote, cli: CommandLine) -> None:
    here = cli.json("run", TASK, "-a", "oracle")
    there = remote.json("run", TASK, "-a", "oracle")
    assert _shape(there) == _shape(here)
    assert (there["passed"], there["errors"]) == (here["passed"], here["errors"]) == (1, 0)
    for command in (("job", "show"), ("report",)):
        assert _shape(remote.json(*command, str(there["job"]))) == _shape(cli.json(*command, str(here["job"])))
    ours, theirs = str(here["results"][0]["trial"]), str(there["results"][0]["trial"])
    assert _shape(remote.json("trial", "show", theirs)) == _shape(cli.json("trial", "show", ours))
    assert _paths(remote.json("trial", "files", theirs)) == _paths(cli.json("trial", "files", ours))
    assert "==> verifier/test-stdout.txt <==" in remote("trial", "logs", theirs, "--raw").out
    told = remote("trial", "logs", theirs).out
    assert _timeline(told) == _timeline(cli("trial", "logs", ours).out)
    assert "  | PASSED the file holds 42" in told and remote("trial", "logs", theirs, "--follow").out.startswith(
        told[:60]
    )
    assert remote("trial", "files", theirs, "verifier/reward.txt").out.strip() == "1"
    assert _shape(remote.json("task", "show", "answer-file")) == _shape(cli.json("task", "show", "answer-file"))
    assert set(remote.json("task", "list")[0]) == set(cli.json("task", "list")[0])
    assert not remote.cli.home.exists()


def test_the_table_and_the_exit_status_are_the_same(remote: Remote, tmp_path: Path) -> None:
    done = remote("run", TASK, "-a", "oracle", "-a", "nop")
    assert "2 trials: 1 passed, 1 failed" in done.out
    assert "2/2" in done.err
    broken = write_task(tmp_path, "ungraded", test="exit 0")
    assert "errors" in remote("run", broken, "-a", "oracle", "--max-tries", "1", status=3).out
    job = str(remote.json("job", "list")[0]["job"])
    assert remote.json("job", "retry", job, "--queue-only")["queued"] == 1
    assert remote.json("job", "resume", job, status=3)["errors"] == 1
    assert "verdict" in remote.json("compare", "2")["comparisons"][0]
    out = tmp_path / "files"
    remote("trial", "files", "1", "-o", out)
    assert (out / "verifier" / "reward.txt").read_text().strip() == "1"


def test_plans_queues_and_datasets(remote: Remote) -> None:
    plan = remote.json("run", TASK, "-a", "oracle", "-k", "3", "--dry-run")
    assert (plan["trials"], plan["estimate"]["trials"]) == (3, 3)
    assert "Nothing was run" in remote("run", TASK, "-a", "oracle", "--dry-run").out
    remote("dataset", "create", "one@7", TASK, "--description", "just one")
    assert remote.json("dataset", "list") == [{"id": "one@7", "tasks": 1, "description": "just one"}]
    assert remote.json("dataset", "show", "one")["version"] == "7"
    queued = remote.json("run", "-d", "one@7", "-a", "oracle", "--queue-only")
    assert queued["queued"] == 1
    assert remote.json("job", "resume", str(queued["job"]))["passed"] == 1
    assert remote.json("run", "-t", "answer-file", "-a", "oracle")["passed"] == 1
    assert {"oracle", "nop"} <= {agent["name"] for agent in remote.json("agents")}
    assert any(model["ready"] for model in remote.json("models"))


def test_an_interrupt_leaves_the_job_running(remote: Remote, tmp_path: Path) -> None:
    diary, gate = tmp_path / "diary", tmp_path / "gate"
    told = ("--ak", f"gate={gate}", "--ak", f"diary={diary}")
    agent = ("-a", "tests.e2e.agents:Patient")
    running = remote.cli.start("--server", remote.up.url, "run", write_task(tmp_path, "wait"), *agent, *told)
    until(lambda: diary.exists(), "the agent began")
    running.signal(signal.SIGINT)
    done = running.wait()
    assert done.status == 130
    assert f"seatrial --server {remote.up.url} job cancel" in done.err
    job = str(remote.json("job", "list")[0]["job"])
    assert remote.json("job", "show", job)["status"] == "running"
    gate.touch()
    assert remote.json("job", "resume", job)["passed"] == 1


def test_errors_and_what_only_works_here(remote: Remote, tmp_path: Path) -> None:
    assert "no job 98765" in remote("job", "show", "98765", status=2).err
    assert "no agent 'nobody'" in remote("run", TASK, "-a", "nobody", status=2).err
    a_file = ("-a", "mini-swe-agent", "-m", "openai/x", "--ak", "config_file=/etc/hostname")
    assert "It cannot be a path on the worker's machine" in remote("run", TASK, *a_file, status=2).err
    broken = write_task(tmp_path, "broken")
    (broken / "task.toml").write_text("version = ")
    assert "task.toml" in remote("run", broken, status=2).err
    assert "broken: rejected\n" in remote("task", "add", broken, status=2).out
    assert remote("task", "add", TASK).out == "answer-file: already in library\n"
    for command in (
        ("worker",),
        ("up",),
        ("doctor",),
        ("gc",),
        ("db", "upgrade"),
        ("images", "list"),
        ("token", "list"),
    ):
        refused = remote(*command, status=2)
        assert refused.err.splitlines() == [
            f"seatrial: `seatrial {command[0]}` works on this machine only, not on a service. "
            "Omit --server and unset SEATRIAL_SERVER."
        ]
    nowhere = remote.cli("--server", "http://127.0.0.1:1", "job", "list", status=1)
    assert nowhere.err.strip().endswith("Check the address, and that `seatrial up` runs.")
    assert remote.cli("job", "list", SEATRIAL_SERVER=remote.up.url).out.strip()
    assert not remote.cli.home.exists()


@pytest.mark.parametrize(("name", "model"), [("OPENROUTER_API_KEY", "openrouter/x/y"), ("NOKEYS_API_KEY", "nokeys/m")])
def test_a_key_goes_along_only_where_the_service_has_none(
    remote: Remote, service: CommandLine, cli: CommandLine, name: str, model: str
) -> None:
    wanted = ("run", TASK, "-a", "terminus-2", "-m", model, "--queue-only", "--json")
    without = RunningService.start(cli, "--workers", "0")
    server = ("--server", without.url)
    assert name in remote.cli(*server, *wanted, status=2).err
    assert cli.rows("SELECT count(*) FROM jobs") == [(0,)]
    secret = "canary-161803398"
    job = remote.cli(*server, *wanted, **{name: secret}).json()["job"]
    assert cli.rows("SELECT id FROM jobs WHERE sealed_keys IS NOT NULL") == [(job,)]
    assert secret not in "".join(map(str, cli.rows("SELECT * FROM jobs"))) + without.log
    without.tell()
    assert without.ended().status == 0

    has_one = RunningService.start(cli, "--workers", "0", **{name: "the-service-s-own"})
    again = remote.cli("--server", has_one.url, *wanted, **{name: secret}).json()["job"]
    assert again != job
    assert cli.rows("SELECT id FROM jobs WHERE sealed_keys IS NOT NULL") == [(job,)]


def _shape(value: Any) -> Any:
    """The names and kinds of a JSON document, without what differs from run to run."""
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _timeline(told: str) -> list[str]:
    """The last lines of a try's timeline, without its numbers. Phases before them are written a few times a second, so
    a quick try may have none of them."""
    lines = [re.sub(r"\d+(\.\d+)? m?s", "", line[20:]) for line in told.splitlines()]
    end = lines.index("passed")
    assert set(lines[1:end]) <= {"start", "build", "agent", "verify"}
    return lines[end:]


def _paths(files: list[dict[str, Any]]) -> list[str]:
    return sorted(file["path"] for file in files)
