"""A worker that is lost while it grades costs a grading: the agent does not run again, and no model is called twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from seatrial.scripted_models.scripts import Act, View
from seatrial.scripted_models.server import ScriptedModels
from seatrial.settings import Settings
from tests.command_line import ROOT, CommandLine, Running
from tests.faults.checker import check_home
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC, eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(400)]

BORN = "cut -d' ' -f22 /proc/1/stat"
"""When the sandbox was made: grading waits for ever in that of the agent, and not in one that was made for grading."""
TEST = f"""[ "$(cat /app/born)" != "$({BORN})" ] || while :; do sleep 1; done
if [ "$(cat /app/answer.txt)" = 42 ] && [ "$(stat -c %U:%a /app/answer.txt)" = nobody:640 ] && [ ! -e /etc/hostname ]
then echo 1; else echo 0; fi > /logs/verifier/reward.txt"""
WORK = (
    f"{BORN} > /app/born; echo 42 > /app/answer.txt; chown nobody /app/answer.txt; chmod 640 /app/answer.txt;"
    " rm -f /etc/hostname"
)
SERVICE = "(setsid sleep 86400 &)"
WORKED = "printf 'worked-%d\\n' 42"
"""The screen shows the number behind the word once the lines before have run."""


class Place:
    """A model that lets its agent work, and ends when the work is done."""

    def __init__(self, cli: CommandLine, folder: Path, server: ScriptedModels) -> None:
        self.cli = cli
        self.server = server
        self.task = write_task(folder, "graded", test=TEST, verifier_timeout=600)

    async def submit(self) -> int:
        agent = ("-a", "terminus-2", "-m", "openai/work", "--ak", f"api_base={self.server.base_url}")
        told = await asyncio.to_thread(self.cli.json, "run", self.task, *agent, "--queue-only", OPENAI_API_KEY="k")
        return int(told["job"])

    async def hire(self, **environment: str) -> Running:
        worker = self.cli.fork("worker", "-n", "1", OPENAI_API_KEY="k", **environment)
        await eventually(lambda: "Worker ready" in worker.err.read_text(), "a worker", 120)
        return worker

    async def grading(self, trial: int = 1) -> None:
        """Waits until the agent's run is over and its tests have begun."""
        ready: Callable[[], bool] = lambda: self.cli.count(id=str(trial), phase="verify") == 1  # noqa: E731
        await eventually(ready, "grading", 150)

    @property
    def states(self) -> list[str]:
        folder = self.cli.home / "final"
        return sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []

    def tries(self) -> list[tuple[str | None, str | None]]:
        found = (
            "SELECT json_extract(result, '$.outcome'), json_extract(result, '$.cause') FROM attempts ORDER BY number"
        )
        return [(outcome, cause) for outcome, cause in self.cli.rows(found)]

    async def ended(self, job: int) -> None:
        await eventually(lambda: self.cli.count(job_id=str(job), state="ended") == 1, "the end", 150)


@pytest.fixture
def lines() -> list[str]:
    """What the model types."""
    return [WORK]


@pytest.fixture
async def place(cli: CommandLine, tmp_path: Path, lines: list[str]) -> AsyncIterator[Place]:
    settings = {"LEASE_SEC": "6", "HEARTBEAT_SEC": "2", "REAP_SEC": "2", "SANDBOX": "oci"}
    cli.environment.update({f"SEATRIAL_{name}": value for name, value in settings.items()})
    cli.environment["PYTHONPATH"] = str(ROOT)

    def work(view: View) -> Act:
        if not view.turns:
            return Act("work", (*lines, WORKED))
        if view.asked_to_confirm or "worked-42" in view.screen:
            return Act("done", done=True)
        return Act("look again", wait=1.0)

    async with ScriptedModels(scripts={"work": work}) as server:
        yield Place(cli, tmp_path, server)


async def test_a_worker_that_is_killed_while_grading_costs_a_grading(place: Place) -> None:
    job = await place.submit()
    worker = await place.hire()
    await place.grading()
    calls = place.server.calls
    assert place.states == ["1-1"]
    worker.signal(signal.SIGKILL)
    await place.hire()
    await place.ended(job)
    assert place.tries() == [("error", "worker_lost"), ("passed", None)], "owners, modes and deletions are as they were"
    assert place.server.calls == calls > 2, "no model was called again"
    [(document,)] = place.cli.rows("SELECT result FROM attempts WHERE number = 2")
    assert f'"model_calls":{calls}' in document and "agent's run: of try 1" in document
    assert '"path":"agent/trajectory.json"' in document
    await eventually(lambda: place.states == [], "the state removed")
    await check_home(Settings(home=place.cli.home, cache=place.cli.cache), job, model_calls=calls)


@pytest.mark.long
async def test_a_worker_that_has_to_leave_while_grading_hands_the_state_to_another_machine(place: Place) -> None:
    """Another home, with the same store, files and secret key."""
    home = place.cli.home
    elsewhere = home.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "seatrial.db").symlink_to(home / "seatrial.db")
    place.cli.environment["SEATRIAL_BLOBS_URL"] = f"file://{home}/blobs"
    place.cli.environment["SEATRIAL_SECRET_KEY"] = "a secret that both machines have"
    job = await place.submit()
    worker = await place.hire()
    await place.grading()
    calls = place.server.calls
    worker.signal(signal.SIGTERM)
    drains = "SELECT 1 FROM workers WHERE json_extract(document, '$.draining')"
    await eventually(lambda: bool(place.cli.rows(drains)), "the first signal taken", LIMIT_SEC)
    worker.signal(signal.SIGTERM)
    assert (await asyncio.to_thread(worker.wait, LIMIT_SEC)).status == 0
    assert (home / "blobs" / "trials" / "1" / "final" / "seal").is_file()
    await place.hire(SEATRIAL_HOME=str(elsewhere))
    await place.ended(job)
    assert place.tries() == [(None, None), ("passed", None)], "the first try was given back"
    assert place.server.calls == calls > 2
    seal = home / "blobs" / "trials" / "1" / "final" / "seal"
    await eventually(lambda: not seal.exists(), "the state removed from the blobs")


@pytest.mark.long
@pytest.mark.parametrize("lines", [[WORK, SERVICE]])
async def test_a_state_whose_processes_matter_is_not_graded_without_them(place: Place) -> None:
    job = await place.submit()
    worker = await place.hire()
    await place.grading()
    calls = place.server.calls
    assert place.states == []
    log = next((place.cli.home / "work").glob("*/1-1/trial.log"))
    assert "processes of the agent still run: sleep" in log.read_text()
    worker.signal(signal.SIGKILL)
    await place.hire()
    await eventually(lambda: place.server.calls > calls, "the agent runs again", LIMIT_SEC)
    assert job == 1
