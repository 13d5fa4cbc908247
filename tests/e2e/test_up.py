"""``seatrial up``: it says where it is, refuses a busy port, keeps its workers alive and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from seatrial.system.processes import start_time
from tests.command_line import ROOT, CommandLine, traces
from tests.running_service import RunningService
from tests.task_files import write_task
from tests.waiting import until

pytestmark = pytest.mark.sandbox


class Gate:
    """A job whose agent waits until the gate is opened."""

    def __init__(self, cli: CommandLine, place: Path) -> None:
        self._cli = cli
        self._place = place
        self._gate = place / "gate"
        self.diary = place / "diary"
        cli.environment.update(PYTHONPATH=str(ROOT), SEATRIAL_HEARTBEAT_SEC="1", SEATRIAL_REAP_SEC="1")

    def submit(self) -> None:
        told = ("--ak", f"gate={self._gate}", "--ak", f"diary={self.diary}")
        self._cli("run", write_task(self._place, "wait"), "-a", "tests.e2e.agents:Patient", *told, "--queue-only")

    def at_work(self, times: int = 1) -> None:
        until(lambda: self.begun >= times, f"the agent began {times} time(s)")

    @property
    def begun(self) -> int:
        return len(self.diary.read_text().splitlines()) if self.diary.exists() else 0

    def open(self) -> None:
        self._gate.touch()


def told(cli: CommandLine) -> str:
    """The last heartbeats of all workers."""
    return "".join(document for (document,) in cli.rows("SELECT document FROM workers"))


@pytest.fixture
def gate(cli: CommandLine, tmp_path: Path) -> Gate:
    return Gate(cli, tmp_path)


def test_it_says_where_it_is_and_a_busy_port_is_said(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        refused = cli("up", "--port", port, "--workers", "0", status=1)
        assert refused.err.strip().splitlines() == [
            f"seatrial: Port {port} of 127.0.0.1 is taken by another program. "
            "Choose another with --port, or add --next-port."
        ]
        up = RunningService.start(cli, "--port", port, "--next-port", "--workers", "0")
    assert up.url.startswith("http://127.0.0.1:")
    assert int(up.url.rpartition(":")[2]) > int(port)
    assert up.get("/health") == (200, {"status": "healthy", "service": "Terminal-Bench"})
    assert up.get("/ready")[1]["missing"] == ["workers"]
    greeting = up.running.out.read_text()
    assert str(cli.home) in greeting
    assert "curl" in greeting
    up.tell(signal.SIGINT)
    assert up.ended().status == 0


def test_beyond_loopback_it_refuses_to_start_without_a_token(cli: CommandLine) -> None:
    refused = cli("up", "--host", "0.0.0.0", "--port", "0", "--workers", "0", status=1)
    assert "seatrial token create" in refused.err
    open_on_purpose = RunningService.start(cli, "--host", "0.0.0.0", "--workers", "0", SEATRIAL_AUTH="none")
    assert open_on_purpose.get("/health")[0] == 200


def test_the_first_signal_lets_the_trial_end(cli: CommandLine, gate: Gate) -> None:
    gate.submit()
    up = RunningService.start(cli)
    gate.at_work()
    up.tell()
    until(lambda: up.get("/health")[0] == 0, "no connection is taken any more")
    assert cli.count(state="running") == 1
    gate.open()
    done = up.ended()
    assert done.status == 0, done.err
    assert cli.count(outcome="passed") == 1
    assert (gate.begun, cli.sandboxes()) == (1, set())


def test_the_second_signal_gives_the_trial_back(cli: CommandLine, gate: Gate) -> None:
    gate.submit()
    up = RunningService.start(cli)
    gate.at_work()
    held = cli.sandboxes()
    assert len(held) == 1
    up.tell()
    # Two signals that are sent before a process takes the first are one.
    until(lambda: '"draining":true' in told(cli), "the worker heard the first signal")
    up.tell()
    assert up.ended().status == 0
    assert cli.count(state="queued") == 1
    assert traces(cli.cache, held) == []
    gate.open()
    again = RunningService.start(cli)
    until(lambda: cli.count(outcome="passed") == 1, "the trial that was given back")
    again.tell()
    assert again.ended().status == 0


def test_killed_it_takes_its_workers_along_and_the_next_start_cleans_up(cli: CommandLine, gate: Gate) -> None:
    gate.submit()
    up = RunningService.start(cli, "--workers", "2")
    gate.at_work()
    until(lambda: len(up.workers) == 2, "both workers were started")
    workers, held = up.workers, cli.sandboxes()
    assert len(held) == 1
    up.tell(signal.SIGKILL)
    up.running.process.wait()
    until(lambda: all(start_time(pid) is None for pid in workers), "no worker left")
    gate.open()
    again = RunningService.start(cli)
    until(lambda: cli.count(outcome="passed") == 1, "the trial that was lost")
    until(lambda: not traces(cli.cache, held), "the sandbox of the killed worker is gone")
    again.tell()
    assert again.ended().status == 0


def test_a_killed_worker_is_replaced_and_its_trial_recovered(cli: CommandLine, gate: Gate) -> None:
    gate.submit()
    up = RunningService.start(cli)
    gate.at_work()
    [worker] = up.workers
    os.kill(worker, signal.SIGKILL)
    gate.at_work(2)
    assert worker not in up.workers
    assert "was ended by SIGKILL; another one starts" in up.log
    gate.open()
    until(lambda: cli.count(outcome="passed") == 1, "the recovered trial")
    up.tell()
    assert up.ended().status == 0


LOADS_LATE = """
import sys, time
from pathlib import Path

class Late:
    @staticmethod
    def find_spec(name, *_):
        while name == "harbor" and not Path(__file__).with_name("go").exists():
            time.sleep(0.05)

sys.meta_path.insert(0, Late)
"""
"""What Python runs at its start: Harbor is not loaded before there is a file beside this one."""


def test_workers_are_there_before_harbor_is_and_tell_what_works(cli: CommandLine, tmp_path: Path) -> None:
    late = tmp_path / "late"
    late.mkdir()
    (late / "sitecustomize.py").write_text(LOADS_LATE)
    paths = os.pathsep.join(filter(None, (str(late), os.environ.get("PYTHONPATH"))))
    cli.environment.update(SEATRIAL_HEARTBEAT_SEC="0.5")
    up = RunningService.start(cli, SEATRIAL_LOG_FORMAT="json", PYTHONPATH=paths)
    until(lambda: up.get("/ready")[0] == 200 and '"starting":true' in told(cli), "ready, and still loading")
    (late / "go").touch()
    until(lambda: '"sandboxes":["oci"' in told(cli), "oci")
    up.tell()
    assert up.ended().status == 0
    assert '"message": "Stopped."' in up.log


def test_told_to_stop_while_its_workers_still_load_it_stops(cli: CommandLine) -> None:
    up = RunningService.start(cli)
    up.until_ready()
    up.tell()
    done = up.ended()
    assert done.status == 0
    assert "Traceback" not in done.err
    assert cli.rows("SELECT * FROM workers") == [], "nobody is left on the list"
