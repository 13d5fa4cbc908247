"""The data disk is full: claims stop, uploads are refused, nothing is truncated, and all goes on once there is room."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.faults.configurations import Configuration
from tests.host_processes import waiting_for, write_beside
from tests.running_service import RunningService
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC, until

pytestmark = pytest.mark.sandbox

_LOW_WATER_MB = 16


@pytest.fixture
def small_disk(cli: CommandLine, configuration: Configuration) -> Iterator[Path]:
    """The home is a file system of its own, of 64 MB."""
    cli.environment.update(configuration.environment)
    cli.home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", cli.home], check=True)
    cli.environment.update(SEATRIAL_DISK_LOW_WATER_MB=str(_LOW_WATER_MB), SEATRIAL_HEARTBEAT_SEC="1")
    try:
        yield cli.home
    finally:
        for running in cli.started:
            running.end()
        until(lambda: subprocess.run(["umount", cli.home], check=False).returncode == 0, "unmounted")


def fill(disk: Path, leave_mb: int) -> Path:
    """The service writes and removes files meanwhile, so the room is looked at again and again."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as sink:
        while (spare := shutil.disk_usage(disk).free - (leave_mb << 20)) > 0:
            sink.write(bytes(min(spare, 1 << 20)))
    return filler


def upload(up: RunningService, archive: Path) -> int:
    """As ``curl -F files=@archive`` does it."""
    parts = [
        b'--edge\r\nContent-Disposition: form-data; name="files"; filename="task.tar.gz"\r\n',
        b"Content-Type: application/gzip\r\n\r\n" + archive.read_bytes() + b"\r\n--edge--\r\n",
    ]
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    request = urllib.request.Request(f"{up.url}/api/v1/tasks", b"".join(parts), headers)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_SEC) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return refusal.code


def blobs(disk: Path) -> dict[str, bytes]:
    folder = disk / "blobs"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_claims_stop_uploads_are_refused_and_it_recovers(cli: CommandLine, small_disk: Path, tmp_path: Path) -> None:
    write_task(tmp_path, "other", solve="echo 42 > /app/answer.txt # another")
    archive = tmp_path / "other.tar.gz"
    subprocess.run(["tar", "-C", tmp_path, "-czf", archive, "other"], check=True)
    up = RunningService.start(cli)
    up.until_ready()
    filler = fill(small_disk, _LOW_WATER_MB - 8)
    until(lambda: "disk" in up.get("/ready")[1]["missing"], "a full disk is said")
    cli("run", write_task(tmp_path, "wait"), "-a", "oracle", "--queue-only")
    before = blobs(small_disk)
    assert upload(up, archive) == 507
    assert blobs(small_disk) == before, "nothing of it was kept, whole or in part"

    def workers_wait() -> bool:
        told = up.get("/ready")[1]
        return "workers" in told["missing"] and told["parts"][-1]["detail"].startswith("All workers are paused:")

    until(workers_wait, "the workers say why they wait")
    cli.until_heartbeats()
    assert cli.count(state="queued") == 1, "nothing is claimed"
    assert up.get("/health")[0] == 200

    filler.unlink()
    until(lambda: cli.count(outcome="passed") == 1, "it goes on by itself")
    up.until_ready()
    assert upload(up, archive) == 201
    up.tell()
    assert up.ended().status == 0


def test_not_a_byte_left_and_still_nothing_is_lost(cli: CommandLine, small_disk: Path, tmp_path: Path) -> None:
    """No mark, so that the disk runs full under a trial: its result waits for room. The agent waits for that."""
    cli.environment.update(SEATRIAL_DISK_LOW_WATER_MB="0")
    mark = f"full-{uuid.uuid4().hex}"
    wait = waiting_for("/tmp/full", mark)
    task = write_task(tmp_path, "slow", solve=f"{wait}\necho 42 > /app/answer.txt", agent_timeout=600)
    cli("run", task, "-a", "oracle", "--queue-only")
    up = RunningService.start(cli)
    until(lambda: cli.count(phase="agent") == 1, "the agent is at work")
    filler = fill(small_disk, 0)
    write_beside("/tmp/full", mark)
    until(lambda: "There is no room left to keep" in up.log, "the files of the try wait for room")
    assert cli.count(state="ended") == 0
    filler.unlink()
    until(lambda: cli.count(state="ended") == 1, "the result was recorded")
    assert cli.count(outcome="passed") == 1
    up.tell()
    assert up.ended().status == 0
