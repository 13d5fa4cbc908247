"""Workers that die, freeze or are away: every trial ends exactly once, and soon."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seatrial.domain.fleet.isolation import OUTSIDE_LOSSES_ALLOWED, most_tries
from seatrial.settings import Settings
from tests.command_line import ROOT, CommandLine, Running, traces
from tests.faults.checker import check_home
from tests.faults.configurations import Configuration
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC, until

pytestmark = pytest.mark.sandbox

LOST = ("error", "worker_lost")
PASSED = ("passed", None)
CANCELLED = ("cancelled", None)
LEASE_SEC = 30
"""Longer than a busy machine keeps a worker from renewing it. Who waits until one is over takes a shorter one."""
_START_SEC = 90.0
_AGENTS = "tests.e2e.agents"


class WorkerSupervisor:
    """Workers of one home, and jobs whose agent waits until the gate is opened."""

    def __init__(self, cli: CommandLine, place: Path, configuration: Configuration) -> None:
        self.cli = cli
        self._configuration = configuration
        self.gate = place / "gate"
        self.diary = place / "diary"
        self._task = write_task(place, "wait")

    def submit(self, attempts: int, agent: str = "Patient", *flags: str) -> int:
        return self._submit(attempts, agent, self.gate, self.diary, *flags)

    def submit_quick(self, attempts: int) -> int:
        """Trials that wait for nothing."""
        place = self.gate.with_name("open")
        place.touch()
        return self._submit(attempts, "Patient", place, place.with_name("quick"))

    def _submit(self, attempts: int, agent: str, gate: Path, diary: Path, *flags: str) -> int:
        told = ("--ak", f"gate={gate}", "--ak", f"diary={diary}")
        name = f"{_AGENTS}:{agent}"
        queued = self.cli.json("run", self._task, "-a", name, *told, "-k", str(attempts), "--queue-only", *flags)
        return int(queued["job"])

    def hire(self, count: int, capacity: int = 1) -> list[Running]:
        """Workers that are ready for work."""
        hired = [self.cli.fork("worker", "-n", str(capacity)) for _ in range(count)]
        until(lambda: all("Worker ready" in worker.err.read_text() for worker in hired), "workers ready", _START_SEC)
        return hired

    @contextmanager
    def supervised(self, capacity: int) -> Iterator[list[Running]]:
        """One worker that is started again whenever it died; all that were started."""
        starts: list[Running] = []
        over = threading.Event()

        def keep_alive() -> None:
            while not over.wait(0.1):
                if not starts or starts[-1].process.poll() is not None:
                    starts.append(self.cli.fork("worker", "-n", str(capacity)))

        supervisor = threading.Thread(target=keep_alive)
        supervisor.start()
        try:
            yield starts
        finally:
            over.set()
            supervisor.join()

    def working(self, count: int) -> None:
        """Waits until so many agents have begun, over all tries."""
        until(lambda: len(self.begun) >= count, f"{count} agents at work", _START_SEC)

    @property
    def begun(self) -> list[str]:
        """The processes of the agents that began, one line for each try."""
        return self.diary.read_text().splitlines() if self.diary.exists() else []

    def ended(self, job: int, seconds: float) -> None:
        until(lambda: self.cli.count(job_id=str(job), state="ended") == self.cli.count(job_id=str(job)), "end", seconds)

    def check(self, *jobs: int) -> None:
        """What holds after every fault."""
        where = self._configuration.settings
        asyncio.run(check_home(Settings(home=self.cli.home, cache=self.cli.cache, **where), *jobs))

    @property
    def claims(self) -> int:
        return int(self.cli.rows("SELECT count(*) FROM attempts")[0][0])

    def tries(self, job: int) -> list[list[tuple[str | None, str | None]]]:
        """Outcome and cause of each try, one list for each trial."""
        query = """SELECT trial_id, result FROM attempts JOIN trials ON id = trial_id
            WHERE job_id = ? ORDER BY trial_id, number"""
        found: dict[int, list[tuple[str | None, str | None]]] = {}
        for trial, text in self.cli.rows(query, job):
            result = json.loads(text) if text else {}
            found.setdefault(trial, []).append((result.get("outcome"), result.get("cause")))
        return list(found.values())


@pytest.fixture
def crew(cli: CommandLine, tmp_path: Path, configuration: Configuration) -> WorkerSupervisor:
    settings = {"LEASE_SEC": str(LEASE_SEC), "HEARTBEAT_SEC": "2", "REAP_SEC": "2"}
    cli.environment.update({f"SEATRIAL_{name}": value for name, value in settings.items()})
    cli.environment["PYTHONPATH"] = str(ROOT)
    cli.environment.update(configuration.environment)
    return WorkerSupervisor(cli, tmp_path, configuration)


@pytest.mark.timeout(600)  # up to 24 workers start
@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.long)])
def test_kills_of_four_workers_lose_nothing(crew: WorkerSupervisor, times: int) -> None:
    """Again and again four workers die in the middle of a trial; each time others are there to take over."""
    job = crew.submit(4, "Patient", "--max-tries", str(times + 1))
    workers, seen = crew.hire(4), set[str]()
    for kills in range(1, times + 1):
        crew.working(4 * kills)
        seen |= crew.cli.sandboxes()
        assert {str(worker.pid) for worker in workers} == set(crew.begun[-4:]), "each of them holds one"
        others = crew.hire(4)
        for worker in workers:
            worker.signal(signal.SIGKILL)
        until(lambda expected=4 * (kills + 1): crew.claims == expected, "claimed again")  # type: ignore[misc]
        workers = others
    crew.working(4 * (times + 1))
    crew.gate.touch()
    crew.ended(job, LIMIT_SEC)
    assert crew.tries(job) == [[LOST] * times + [PASSED]] * 4
    assert len(seen) == 4 * times
    until(lambda: not traces(crew.cli.cache, seen | crew.cli.sandboxes()), "sandboxes gone")
    crew.check(job)


def test_a_frozen_worker_is_replaced_and_its_result_refused(crew: WorkerSupervisor) -> None:
    crew.cli.environment["SEATRIAL_LEASE_SEC"] = "6"
    job = crew.submit(1)
    [frozen] = crew.hire(1)
    crew.working(1)
    [sandbox] = crew.cli.sandboxes()
    [other] = crew.hire(1)
    frozen.signal(signal.SIGSTOP)
    until(lambda: not traces(crew.cli.cache, {sandbox}), "its sandbox gone")
    crew.working(2)
    assert crew.begun == [str(frozen.pid), str(other.pid)]
    frozen.signal(signal.SIGCONT)
    crew.cli.until_heartbeats(frozen.pid)
    assert crew.cli.count(state="running") == 1, "what the frozen one had to say did not count"
    crew.gate.touch()
    crew.ended(job, LIMIT_SEC)
    assert crew.tries(job) == [[LOST, PASSED]]
    next_job = crew.submit(2)
    crew.ended(next_job, LIMIT_SEC)
    assert crew.tries(next_job) == [[PASSED], [PASSED]]
    crew.check(job, next_job)
    for worker in (frozen, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait(LIMIT_SEC).status == 0
    assert crew.cli.sandboxes() == set()


def test_a_trial_that_kills_its_worker_ends_after_two_attempts(crew: WorkerSupervisor) -> None:
    crew.gate.touch()
    killer = crew.submit(1, "Assassin")
    workers = crew.hire(3)
    crew.ended(killer, LIMIT_SEC)
    assert crew.tries(killer) == [[LOST, LOST]]
    [row] = crew.cli.json("job", "show", str(killer))["results"]
    assert (row["outcome"], row["cause"], row["reward"]) == ("error", "worker_lost", None)
    others = crew.submit(3)
    crew.ended(others, LIMIT_SEC)
    assert crew.tries(others) == [[PASSED]] * 3
    assert [worker.process.poll() for worker in workers].count(-signal.SIGKILL) == 2
    crew.check(killer, others)
    assert crew.cli.sandboxes() == set()


@pytest.mark.timeout(600)  # up to a dozen processes start, one after another
def test_a_trial_that_kills_its_worker_takes_nobody_along(crew: WorkerSupervisor) -> None:
    """Ten neighbours in the same process: twice they are lost together, then halves run beside normal work."""
    neighbours, killer = crew.submit(10), crew.submit(1, "Assassin")
    with crew.supervised(11) as starts:
        until(lambda: crew.cli.count(shared_losses="2") >= 5, "suspects", 240)
        quick = crew.submit_quick(10)
        crew.ended(quick, 240)
        assert crew.cli.count(job_id=str(neighbours), state="ended") == 0, "they still wait at the gate"
        crew.gate.touch()
        crew.ended(neighbours, 300)
        crew.ended(killer, 240)
    assert crew.tries(quick) == [[PASSED]] * 10, "nobody of the search died with them"
    [last] = crew.tries(killer)
    assert set(last) == {LOST} and len(last) <= most_tries(2, 11) - OUTSIDE_LOSSES_ALLOWED
    assert all(tries[-1] == PASSED and set(tries[:-1]) == {LOST} for tries in crew.tries(neighbours))
    assert len(starts) == 3, "after the second loss nothing but processes of suspects died"
    assert crew.cli.count(outcome="passed") == 20
    assert crew.cli.count(outcome="error", cause="worker_lost") == 1


@pytest.mark.timeout(600)
def test_killed_workers_slow_nobody(crew: WorkerSupervisor) -> None:
    """Twelve trials lose their workers twice, and all go on at once: their supervisor saw that nobody of them did it.
    Another job's ten run meanwhile."""
    job = crew.submit(12)
    keeper = crew.cli.start("worker", "--processes", "2", "-n", "11")
    for kills in range(1, 3):
        crew.working(12 * kills)
        for pid in set(crew.begun[-12:]):
            os.kill(int(pid), signal.SIGKILL)
    crew.working(36)
    assert crew.cli.count(state="running") == 12, "all at the same time, none behind another"
    crew.ended(crew.submit_quick(10), LIMIT_SEC)
    assert crew.cli.count(job_id=str(job), state="running") == 12
    crew.gate.touch()
    crew.ended(job, LIMIT_SEC)
    assert crew.tries(job) == [[LOST, LOST, PASSED]] * 12
    assert crew.cli.rows("SELECT DISTINCT shared_losses, outside_losses FROM trials WHERE job_id = ?", job) == [(0, 2)]
    deaths = [json.loads(document).get("death") for (document,) in crew.cli.rows("SELECT document FROM workers")]
    assert deaths.count("killed") == len(set(crew.begun[:24]))
    keeper.signal(signal.SIGTERM)
    assert keeper.wait(LIMIT_SEC).status == 0
    crew.check(job)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_crash_is_searched_at_once(crew: WorkerSupervisor) -> None:
    """The supervisor saw a crash: the first one makes suspects, and the halves find the trial."""
    crew.gate.touch()
    crew.submit(1, "Crasher")
    keeper = crew.cli.start("worker", "--processes", "1", "-n", "4")
    others = crew.submit_quick(2)
    crew.ended(1, 240)
    crew.ended(others, 240)
    assert crew.cli.count(outcome="passed") == 2
    [found] = crew.cli.rows("SELECT outcome, cause FROM trials WHERE job_id = 1")
    assert found == LOST
    results = crew.cli.rows("SELECT result FROM attempts WHERE trial_id = 1")
    assert {json.loads(text)["failure"]["type"] for (text,) in results} == {"WorkerLost:crash"}
    keeper.signal(signal.SIGTERM)
    assert keeper.wait(LIMIT_SEC).status == 0
    crew.check(1, others)


def test_trials_are_cancelled_while_their_workers_are_away(crew: WorkerSupervisor) -> None:
    job = crew.submit(6)
    away, frozen = crew.hire(2)
    crew.working(2)
    held = crew.cli.sandboxes()
    away.signal(signal.SIGKILL)
    frozen.signal(signal.SIGSTOP)
    assert "6 trials" in crew.cli("job", "cancel", str(job)).out
    assert crew.cli.count(state="ended", outcome="cancelled") == 4
    frozen.signal(signal.SIGCONT)
    crew.hire(1)
    crew.ended(job, LIMIT_SEC)
    crew.gate.touch()
    assert crew.cli.count(outcome="cancelled") == 6
    assert len(crew.begun) == 2, "no agent began after the cancel"
    until(lambda: not traces(crew.cli.cache, held), "sandboxes gone")
    assert crew.tries(job) == [[CANCELLED]] * 2
    crew.check(job)


def test_everything_is_killed_and_started_again(crew: WorkerSupervisor) -> None:
    """FAULTS 9. What others left in the same folder is not ours to remove."""
    job = crew.submit(4)
    workers = crew.hire(2, capacity=2)
    crew.working(4)
    held = crew.cli.sandboxes()
    decoy = crew.cli.cache / "run" / f"decoy-{uuid.uuid4().hex}"
    decoy.mkdir()
    try:
        for worker in workers:
            worker.signal(signal.SIGKILL)
        crew.hire(2, capacity=2)
        crew.working(8)
        crew.gate.touch()
        crew.ended(job, LIMIT_SEC)
        assert len(held) == 4 and crew.tries(job) == [[LOST, PASSED]] * 4
        until(lambda: not traces(crew.cli.cache, held), "sandboxes gone")
        crew.check(job)
        assert decoy.is_dir()
    finally:
        decoy.rmdir()
