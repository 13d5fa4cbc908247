"""Whoever takes over the API's process finds nothing there: no capability, no way to get one, no dangerous call.

Read from the kernel's own words about processes that were really started.
"""

from __future__ import annotations

import errno
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from seatrial.system.privileges import _CAPABILITIES, _NUMBERS, NOT_FOR_WORKERS
from tests.command_line import CommandLine
from tests.host_processes import status_of
from tests.running_service import RunningService, service_up
from tests.waiting import until

pytestmark = pytest.mark.sandbox  # only root has something to give up


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[RunningService]:
    place = tmp_path_factory.mktemp("privileges")
    with CommandLine(place / "home", image_cache, place) as cli, service_up(cli, "--workers", "1") as running:
        until(lambda: bool(running.workers), "a worker")
        running.until_ready()
        yield running


def capabilities(pid: int, field: str) -> set[str]:
    mask = int(status_of(pid)[field], 16)
    return {name for number, name in enumerate(_CAPABILITIES) if mask >> number & 1}


@pytest.mark.parametrize("field", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_the_api_has_no_capability(service: RunningService, field: str) -> None:
    assert capabilities(service.api, field) == set()


def test_the_api_gains_no_privilege_and_its_calls_are_filtered(service: RunningService) -> None:
    status = status_of(service.api)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_every_thread_of_the_api_is_confined(service: RunningService) -> None:
    service.get("/api/v1/tasks")
    found = []
    for thread in Path(f"/proc/{service.api}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # an idle one may end meanwhile
            found.append((thread / "status").read_text())
    assert found
    for status in found:
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert (int(fields["CapEff"], 16), fields["NoNewPrivs"], fields["Seccomp"]) == (0, "1", "2")


@pytest.mark.parametrize("field", ["CapPrm", "CapEff", "CapBnd"])
def test_a_worker_keeps_what_sandboxes_need_and_no_more(service: RunningService, field: str) -> None:
    [worker] = service.workers
    until(lambda: not capabilities(worker, field) & NOT_FOR_WORKERS, "a worker that gave them up")
    assert {"sys_admin", "net_admin", "chown", "mknod", "setuid"} <= capabilities(worker, field)


def test_the_service_works_all_the_same(service: RunningService) -> None:
    """The twin: a task is taken in, run in a sandbox by the worker, read and removed."""
    with service.client() as client:
        client.post("/api/v1/samples").raise_for_status()
        job = client.post("/api/v1/jobs", json={"tasks": ["answer-file"]}).raise_for_status().json()["id"]
        until(lambda: client.get(f"/api/v1/jobs/{job}").json()["ended_at"] is not None, "the job's end", 200)
        assert client.get(f"/api/v1/jobs/{job}").json()["counts"]["passed"] == 1
        client.delete(f"/api/v1/jobs/{job}").raise_for_status()


_TRY = """
import ctypes, sys
from seatrial.system.privileges import confine_api
if sys.argv[1] == "confined":
    assert not confine_api().kept
libc = ctypes.CDLL(None, use_errno=True)
for number in sys.argv[2:]:
    ctypes.set_errno(0)
    got = libc.syscall(int(number), *(ctypes.c_long(-1) for _ in range(6)))
    print(got, ctypes.get_errno())
"""
_COLUMN = 0 if platform.machine() == "x86_64" else 1
_GETPID = (39, 172)[_COLUMN]


def _tried(how: str, *numbers: int) -> list[tuple[int, int]]:
    """What system calls with senseless arguments return, and their errors."""
    command = [sys.executable, "-c", _TRY, how, *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(int(got), int(error)) for got, error in (line.split() for line in done.stdout.splitlines())]


@pytest.fixture(scope="module")
def refused() -> dict[str, tuple[int, int]]:
    return dict(zip(_NUMBERS, _tried("confined", *(numbers[_COLUMN] for numbers in _NUMBERS.values())), strict=True))


@pytest.mark.parametrize("call", sorted(_NUMBERS))
def test_a_dangerous_call_is_refused(refused: dict[str, tuple[int, int]], call: str) -> None:
    assert refused[call] == (-1, errno.EPERM)


def test_other_calls_go_on() -> None:
    [(pid, _)] = _tried("confined", _GETPID)
    assert pid > 0


def test_without_the_filter_such_a_call_gets_as_far_as_its_arguments() -> None:
    calls = [_NUMBERS[name][_COLUMN] for name in ("keyctl", "mount", "setns")]
    assert (-1, errno.EPERM) not in _tried("free", *calls)


def test_no_program_that_is_started_makes_a_namespace() -> None:
    """By clone, whose flags are looked at, as by unshare; threads and programs are made all the same."""
    program = "from seatrial.system.privileges import confine_api; import os, subprocess; confine_api(); "
    unshared = program + "print(subprocess.run(['unshare', '-Ur', 'id', '-u'], capture_output=True).returncode)"
    started = program + "import threading; t = threading.Thread(target=print, args=(7,)); t.start(); t.join()"
    for code, said in ((unshared, "1"), (started, "7")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == said


def test_doctor_says_what_is_dropped(service: RunningService, cli: CommandLine) -> None:
    said = cli("doctor").out
    assert "API process: user 60999; no capabilities" in said
