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
from itertools import product
from pathlib import Path

import pytest

from seatrial.domain.trial import OUTSIDE_LOSSES_ALLOWED
from seatrial.settings import Settings
from tests.command_line import ROOT, CommandLine, Running, traces
from tests.faults.checker import check_home
from tests.faults.configurations import Configuration
from tests.most_tries import most_tries
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC, until

pytestmark = pytest.mark.sandbox

LOST = ("error", "worker_lost")
PASSED = ("passed", None)
CANCELLED = ("cancelled", None)
LEASE_SEC = 30
"""Longer than a busy machine keeps a worker from renewing it. Who waits until one is over takes a shorter one."""
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
        until(lambda: all("Worker ready" in worker.err.read_text() for worker in hired), "workers ready")
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
        until(lambda: len(self.begun) >= count, f"{count} agents at work")

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
def supervisor(cli: CommandLine, tmp_path: Path, configuration: Configuration) -> WorkerSupervisor:
    settings = {"LEASE_SEC": str(LEASE_SEC), "HEARTBEAT_SEC": "2", "REAP_SEC": "2"}
    cli.environment.update({f"SEATRIAL_{name}": value for name, value in settings.items()})
    cli.environment["PYTHONPATH"] = str(ROOT)
    cli.environment.update(configuration.environment)
    return WorkerSupervisor(cli, tmp_path, configuration)


@pytest.mark.timeout(600)  # up to 24 workers start
@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.long)])
def test_kills_of_four_workers_lose_nothing(supervisor: WorkerSupervisor, times: int) -> None:
    """Again and again four workers die in the middle of a trial; each time others are there to take over."""
    job = supervisor.submit(4, "Patient", "--max-tries", str(times + 1))
    workers, seen = supervisor.hire(4), set[str]()
    for kills in range(1, times + 1):
        supervisor.working(4 * kills)
        seen |= supervisor.cli.sandboxes()
        assert {str(worker.pid) for worker in workers} == set(supervisor.begun[-4:]), "each of them holds one"
        others = supervisor.hire(4)
        for worker in workers:
            worker.signal(signal.SIGKILL)
        until(lambda expected=4 * (kills + 1): supervisor.claims == expected, "claimed again")  # type: ignore[misc]
        workers = others
    supervisor.working(4 * (times + 1))
    supervisor.gate.touch()
    supervisor.ended(job, LIMIT_SEC)
    assert supervisor.tries(job) == [[LOST] * times + [PASSED]] * 4
    assert len(seen) == 4 * times
    until(lambda: not traces(supervisor.cli.cache, seen | supervisor.cli.sandboxes()), "sandboxes gone")
    supervisor.check(job)


def test_a_frozen_worker_is_replaced_and_its_result_refused(supervisor: WorkerSupervisor) -> None:
    supervisor.cli.environment["SEATRIAL_LEASE_SEC"] = "12"
    job = supervisor.submit(1)
    [frozen] = supervisor.hire(1)
    supervisor.working(1)
    [sandbox] = supervisor.cli.sandboxes()
    [other] = supervisor.hire(1)
    frozen.signal(signal.SIGSTOP)
    until(lambda: not traces(supervisor.cli.cache, {sandbox}), "its sandbox gone")
    supervisor.working(2)
    assert supervisor.begun == [str(frozen.pid), str(other.pid)]
    frozen.signal(signal.SIGCONT)
    supervisor.cli.until_heartbeats(frozen.pid)
    assert supervisor.cli.count(state="running") == 1, "what the frozen one had to say did not count"
    supervisor.gate.touch()
    supervisor.ended(job, LIMIT_SEC)
    assert supervisor.tries(job) == [[LOST, PASSED]]
    next_job = supervisor.submit(2)
    supervisor.ended(next_job, LIMIT_SEC)
    assert supervisor.tries(next_job) == [[PASSED], [PASSED]]
    supervisor.check(job, next_job)
    for worker in (frozen, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait(LIMIT_SEC).status == 0
    assert supervisor.cli.sandboxes() == set()


def test_a_trial_that_kills_its_worker_ends_after_two_tries(supervisor: WorkerSupervisor) -> None:
    supervisor.gate.touch()
    killer = supervisor.submit(1, "Assassin")
    workers = supervisor.hire(3)
    supervisor.ended(killer, LIMIT_SEC)
    assert supervisor.tries(killer) == [[LOST, LOST]]
    [row] = supervisor.cli.json("job", "show", str(killer))["results"]
    assert (row["outcome"], row["cause"], row["reward"]) == ("error", "worker_lost", None)
    others = supervisor.submit(3)
    supervisor.ended(others, LIMIT_SEC)
    assert supervisor.tries(others) == [[PASSED]] * 3

    def killed() -> int:
        return [worker.process.poll() for worker in workers].count(-signal.SIGKILL)

    until(lambda: killed() >= 2, "both deaths are known here too")
    assert killed() == 2
    supervisor.check(killer, others)
    assert supervisor.cli.sandboxes() == set()


@pytest.mark.timeout(600)  # up to a dozen processes start, one after another
def test_a_trial_that_kills_its_worker_takes_nobody_along(supervisor: WorkerSupervisor) -> None:
    """Ten neighbours in the same process: twice they are lost together, then halves run beside normal work. They name
    their sandbox: a process of suspects has to find out whether it has that one."""
    neighbours = supervisor.submit(10, "Patient", "-e", "oci")
    killer = supervisor.submit(1, "Assassin", "-e", "oci")
    with supervisor.supervised(11) as starts:
        until(lambda: supervisor.cli.count(shared_losses="2") >= 5, "suspects", 240)
        quick = supervisor.submit_quick(10)
        supervisor.ended(quick, 240)
        assert supervisor.cli.count(job_id=str(neighbours), state="ended") == 0, "they still wait at the gate"
        supervisor.gate.touch()
        supervisor.ended(neighbours, 300)
        supervisor.ended(killer, 240)
    assert supervisor.tries(quick) == [[PASSED]] * 10, "nobody of the search died with them"
    [last] = supervisor.tries(killer)
    assert set(last) == {LOST} and len(last) <= most_tries(2, 11) - OUTSIDE_LOSSES_ALLOWED
    assert all(tries[-1] == PASSED and set(tries[:-1]) == {LOST} for tries in supervisor.tries(neighbours))
    assert len(starts) == 3, "after the second loss nothing but processes of suspects died"
    assert supervisor.cli.count(outcome="passed") == 20
    assert supervisor.cli.count(outcome="error", cause="worker_lost") == 1


@pytest.mark.timeout(600)
def test_killed_workers_slow_nobody(supervisor: WorkerSupervisor) -> None:
    """Twelve trials lose their workers twice, and all go on at once: their supervisor saw that nobody of them did it.
    Another job's ten run meanwhile."""
    job = supervisor.submit(12)
    keeper = supervisor.cli.start("worker", "--processes", "2", "-n", "11")
    for kills in range(1, 3):
        supervisor.working(12 * kills)
        # Stopped first: one that lived a moment longer could take over from the other, and lose those trials again.
        for number, pid in product((signal.SIGSTOP, signal.SIGKILL), set(supervisor.begun[-12:])):
            os.kill(int(pid), number)
    supervisor.working(36)
    assert supervisor.cli.count(state="running") == 12, "all at the same time, none behind another"
    supervisor.ended(supervisor.submit_quick(10), LIMIT_SEC)
    assert supervisor.cli.count(job_id=str(job), state="running") == 12
    supervisor.gate.touch()
    supervisor.ended(job, LIMIT_SEC)
    assert supervisor.tries(job) == [[LOST, LOST, PASSED]] * 12
    assert supervisor.cli.rows("SELECT DISTINCT shared_losses, outside_losses FROM trials WHERE job_id = ?", job) == [
        (0, 2)
    ]
    deaths = [json.loads(document).get("death") for (document,) in supervisor.cli.rows("SELECT document FROM workers")]
    assert deaths.count("killed") == len(set(supervisor.begun[:24]))
    keeper.signal(signal.SIGTERM)
    assert keeper.wait(LIMIT_SEC).status == 0
    supervisor.check(job)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_crash_is_searched_at_once(supervisor: WorkerSupervisor) -> None:
    """The supervisor saw a crash: the first one makes suspects, and the halves find the trial."""
    supervisor.gate.touch()
    supervisor.submit(1, "Crasher")
    keeper = supervisor.cli.start("worker", "--processes", "1", "-n", "4")
    others = supervisor.submit_quick(2)
    supervisor.ended(1, 240)
    supervisor.ended(others, 240)
    assert supervisor.cli.count(outcome="passed") == 2
    [found] = supervisor.cli.rows("SELECT outcome, cause FROM trials WHERE job_id = 1")
    assert found == LOST
    results = supervisor.cli.rows("SELECT result FROM attempts WHERE trial_id = 1")
    assert {json.loads(text)["failure"]["type"] for (text,) in results} == {"WorkerLost:crash"}
    keeper.signal(signal.SIGTERM)
    assert keeper.wait(LIMIT_SEC).status == 0
    supervisor.check(1, others)


def test_trials_are_cancelled_while_their_workers_are_away(supervisor: WorkerSupervisor) -> None:
    job = supervisor.submit(6)
    away, frozen = supervisor.hire(2)
    supervisor.working(2)
    held = supervisor.cli.sandboxes()
    frozen.signal(signal.SIGSTOP)  # first: it would queue the other one's trial again
    away.signal(signal.SIGKILL)
    assert "6 trials" in supervisor.cli("job", "cancel", str(job)).out
    assert supervisor.cli.count(state="ended", outcome="cancelled") == 4
    frozen.signal(signal.SIGCONT)
    supervisor.hire(1)
    supervisor.ended(job, LIMIT_SEC)
    supervisor.gate.touch()
    assert supervisor.cli.count(outcome="cancelled") == 6
    assert len(supervisor.begun) == 2, "no agent began after the cancel"
    until(lambda: not traces(supervisor.cli.cache, held), "sandboxes gone")
    assert supervisor.tries(job) == [[CANCELLED]] * 2
    supervisor.check(job)


def test_everything_is_killed_and_started_again(supervisor: WorkerSupervisor) -> None:
    """FAULTS 9. What others left in the same folder is not ours to remove."""
    job = supervisor.submit(4)
    workers = supervisor.hire(2, capacity=2)
    supervisor.working(4)
    held = supervisor.cli.sandboxes()
    decoy = supervisor.cli.cache / "run" / f"decoy-{uuid.uuid4().hex}"
    decoy.mkdir()
    try:
        for worker in workers:
            worker.signal(signal.SIGKILL)
        supervisor.hire(2, capacity=2)
        supervisor.working(8)
        supervisor.gate.touch()
        supervisor.ended(job, LIMIT_SEC)
        assert len(held) == 4 and supervisor.tries(job) == [[LOST, PASSED]] * 4
        until(lambda: not traces(supervisor.cli.cache, held), "sandboxes gone")
        supervisor.check(job)
        assert decoy.is_dir()
    finally:
        decoy.rmdir()
