"""Fault 16: sixty ways to write a path that leads out of a task's or a trial's files. None leads anywhere.

Sent as bytes over a socket to a real server: any client library would tidy some of them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import TaskRef
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.command_line import CommandLine
from tests.running_service import RunningService, service_up
from tests.task_files import write_task

CANARY = "canary-of-another-file"
UP = "../../../../../../../.."

# Each is a rule of its own; {up} climbs to the top, {home} is the installation's folder, {other} a neighbour's file.
ENCODINGS = [
    "{up}{home}/canary.txt",
    "{up}/etc/passwd",
    "../canary.txt",
    "../../canary.txt",
    "../../../canary.txt",
    "..%2fcanary.txt",
    "..%2Fcanary.txt",
    "%2e%2e/canary.txt",
    "%2E%2E/canary.txt",
    "%2e./canary.txt",
    ".%2e/canary.txt",
    "%2e%2e%2fcanary.txt",
    "%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%252fcanary.txt",
    "%252e%252e%252fcanary.txt",
    "%25252e%25252e%25252fcanary.txt",
    "..\\canary.txt",
    "..%5ccanary.txt",
    "..%5Ccanary.txt",
    "..%255ccanary.txt",
    "%2e%2e%5c%2e%2e%5ccanary.txt",
    "..\\/canary.txt",
    "..%5c%2fcanary.txt",
    "..%c0%afcanary.txt",
    "..%c1%9ccanary.txt",
    "%c0%ae%c0%ae/canary.txt",
    "%e0%80%ae%e0%80%ae%e0%80%afcanary.txt",
    "%f0%80%80%ae./canary.txt",
    "..%u2215canary.txt",
    "%u002e%u002e/canary.txt",
    "..%ef%bc%8fcanary.txt",
    "..%e2%88%95canary.txt",
    "%ef%bc%8e%ef%bc%8e/canary.txt",
    "..%00/canary.txt",
    "../canary.txt%00.txt",
    "%00../canary.txt",
    "instruction.md%00/../../canary.txt",
    "....//canary.txt",
    "..../canary.txt",
    "....\\\\canary.txt",
    "..././canary.txt",
    "...//canary.txt",
    ".//..//canary.txt",
    "./../canary.txt",
    "//etc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "%2Fetc/passwd",
    "///{home}/canary.txt",
    "file:///etc/passwd",
    "file%3A%2F%2F%2Fetc%2Fpasswd",
    "~/canary.txt",
    "~root/.bashrc",
    "C:%5ccanary.txt",
    "tests/../../canary.txt",
    "tests/%2e%2e/%2e%2e/canary.txt",
    "tests/..%2f..%2fcanary.txt",
    "agent/../../../{other}",
    "agent/%2e%2e/%2e%2e/%2e%2e/{other}",
    "..;/canary.txt",
    "..%3b/canary.txt",
    "..%09/canary.txt",
    "..%0d%0a/canary.txt",
    "..%20/canary.txt",
    "../canary.txt?",
    "..?/../canary.txt",
    "..%23/canary.txt",
    ".%00./canary.txt",
    "proc/self/environ/{up}/proc/self/environ",
    "{up}/proc/self/environ",
    "link-out",
    "..",
    ".",
    "%2e%2e",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningService, str, Path]]:
    """A service whose home has a task, two trials with files, and canaries in reach of every wrong path."""
    place = tmp_path_factory.mktemp("traversal")
    home = place / "home"
    digest = asyncio.run(fill(Settings(home=home, cache=place / "cache"), place))
    for folder in (place, home, *(path for path in home.rglob("*") if path.is_dir())):
        (folder / "canary.txt").write_text(CANARY)
    for task in (home / "tasks").rglob("instruction.md"):
        (task.parent / "link-out").symlink_to(place / "canary.txt")
        (task.parent / "canary.txt").unlink()
        for below in task.parent.rglob("canary.txt"):
            below.unlink()  # what is inside the task belongs to it
    reader = {"SEATRIAL_API_USER": "root"}  # it can read every canary; another account could not pass our folders
    with CommandLine(home, place / "cache", place) as cli, service_up(cli, "--workers", "0", **reader) as service:
        yield service, digest, home


async def fill(settings: Settings, place: Path) -> str:
    async with open_installation(settings) as installation:
        [task] = await installation.library.add(write_task(place, "plain"))
        await installation.library.source(task)
        await run(installation, task.name, task.digest, {"agent/agent.log": b"mine"})
        await run(installation, task.name, task.digest, {"agent/secret.log": CANARY.encode()})
        return task.digest


async def run(installation: Installation, name: str, digest: str, files: dict[str, bytes]) -> None:
    spec = JobSpec(tasks=(TaskRef(name=name, digest=digest),), agents=(AgentSpec(name="oracle"),))
    job = await installation.store.jobs.create(spec, tuple(plan(spec)), installation.clock())
    worker = assemble_worker(installation, FakeRunner(files=files), 1, job.id)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while (counts := (await installation.store.jobs.counts([job.id]))[job.id]).passed == 0:
            assert not counts.error
            await asyncio.sleep(0.02)
    worker.leave()
    await working


def get(service: RunningService, target: str) -> tuple[int, bytes]:
    with service.connect() as connection:
        host = ":".join(map(str, service.address))
        request = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode("latin-1", "replace"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def test_sixty_encodings_lead_nowhere(served: tuple[RunningService, str, Path]) -> None:
    service, digest, home = served
    assert len(set(ENCODINGS)) == len(ENCODINGS) >= 60
    roots = [f"/api/v1/tasks/{digest}/files/", "/api/v1/trials/1/files/", "/api/v1/trials/1/logs/"]
    roots += ["/", "/assets/", "/docs/static/"]
    for root in roots:
        for encoding in ENCODINGS:
            target = root + encoding.format(up=UP, home=home, other="2/1/agent/secret.log")
            status, body = get(service, target)
            for leaked in (CANARY.encode(), b"root:x:0:0", b"SEATRIAL_HOME=", b"PATH=/"):
                assert leaked not in body, target
            assert status < 500, (target, status)
            if root.startswith("/api"):
                is_the_list = encoding in (".", "..", "%2e%2e")
                assert status >= 400 or is_the_list, (target, status)


def test_digests_and_numbers_are_no_paths_either(served: tuple[RunningService, str, Path]) -> None:
    service, _, _ = served
    for wrong in ("..", "%2e%2e", "..%2f..", "sha256:..%2f..%2f", "sha256:" + "%2e" * 64, "1%2f..%2f2", "-1", "1%00"):
        for target in (f"/api/v1/tasks/{wrong}/files/canary.txt", f"/api/v1/trials/{wrong}/files/canary.txt"):
            status, body = get(service, target)
            assert 400 <= status < 500 and CANARY.encode() not in body, target


def test_the_files_that_are_there_are_given(served: tuple[RunningService, str, Path]) -> None:
    service, digest, home = served
    assert (home / "canary.txt").read_text() == CANARY
    for path in ("tests/test.sh", quote("tests/test.sh", safe=""), "%74ests/test.sh"):
        status, body = get(service, f"/api/v1/tasks/{digest}/files/{path}")
        assert (status, b"reward" in body) == (200, True), path
    for path in ("agent/agent.log", "agent%2fagent.log", "agent/%61gent.log"):
        assert get(service, f"/api/v1/trials/1/files/{path}") == (200, b"mine"), path
    assert get(service, "/api/v1/trials/2/files/agent/secret.log") == (200, CANARY.encode()), "the neighbour's own way"
