"""Where no disk image can be had, sandboxes are measured: by every way that a plain walk over the files would miss."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.disk_image import DiskImages
from seatrial.sandboxes.host.storage import StorageWatch, TreeMeter
from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.sandbox import Sandbox
from tests.trials import Workplace
from tests.workplace_fixture import Make

MB = 1 << 20
LIMIT = 8 * MB
HOLD = """import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x" * {size})
os.unlink(sys.argv[1])
{then}
print("ready", flush=True)
sys.stdin.read()
"""
UNLINKED = "exec 9> /big; rm /big; dd if=/dev/zero bs=1M count=300 >&9; sleep 600"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Processes that keep a file without a name."""
    running: list[subprocess.Popen[bytes]] = []

    def hold(path: Path, then: str = "", size: int = 12 * MB) -> int:
        command = ["python3", "-c", HOLD.format(size=size, then=then), str(path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        return process.pid

    yield hold
    for process in running:
        process.communicate()


def _measured(directory: Path, *processes: int, given: int = 0) -> int:
    return TreeMeter((directory,), lambda: processes, LIMIT, given).measure()


@pytest.mark.parametrize(
    "then",
    ["", "m = mmap.mmap(file, 0); os.close(file)", "second = os.dup(file); os.close(file)"],
    ids=["open", "mapped only", "by another descriptor"],
)
def test_deleted_files_count(tmp_path: Path, held: Callable[..., int], then: str) -> None:
    assert _measured(tmp_path, held(tmp_path / "big", then)) >= 12 * MB


def test_deleted_file_of_several_processes_counts_once(tmp_path: Path, held: Callable[..., int]) -> None:
    process = held(tmp_path / "big", "os.fork() or sys.stdin.read()")
    children = [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    assert children and 12 * MB <= _measured(tmp_path, process, *children) < 20 * MB


def test_memory_is_no_storage(tmp_path: Path, held: Callable[..., int]) -> None:
    anonymous = "os.close(file); file = os.memfd_create('m'); os.write(file, b'x' * 12000000)"
    assert _measured(tmp_path, held(tmp_path / "big", anonymous)) < MB


def test_path_longer_than_any_call_takes(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("big", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(file, b"x" * 12 * MB)
    os.close(file)
    os.close(here)
    assert _measured(tmp_path) >= 12 * MB
    subprocess.run(["rm", "-rf", tmp_path / ("d" * 200)], check=True)


def test_more_files_than_belong_to_the_limit(tmp_path: Path) -> None:
    for number in range(400):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in range(170):
            os.symlink("x", folder / str(name))
    assert _measured(tmp_path) > LIMIT
    assert _measured(tmp_path / "1") < LIMIT


def test_names_links_and_holes_are_no_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * MB)
    for number in range(20):
        os.link(tmp_path / "file", tmp_path / f"name{number}")
    (tmp_path / "out").symlink_to("/usr")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert MB <= _measured(tmp_path) < 2 * MB
    assert _measured(tmp_path, given=2 * MB) == 0


async def test_newest_goes_before_the_disk_is_full(tmp_path: Path) -> None:
    """The reserve is more than the disk has: it is as short as it can be, and nobody is over half of its limit."""
    told: list[str] = []
    watch = StorageWatch(tmp_path, interval_sec=0.01, reserve=1 << 60)
    for name in ("older", "newer"):
        (tmp_path / name).mkdir()
        meter = TreeMeter((tmp_path / name,), list, LIMIT)
        watch.add(name, meter, LIMIT, lambda size, danger, name=name: told.append(name))  # type: ignore[misc]
    try:
        await watch._measure(watch._watched["newer"].loop)
    finally:
        watch.remove("older")
        watch.remove("newer")
    assert told == ["newer"]


@pytest.mark.sandbox
async def test_machine_without_disk_images_watches_and_says_so(tmp_path: Path, image_cache: Path) -> None:
    sandbox = Workplace(tmp_path, image_cache).sandbox(storage_mb=64)
    assert isinstance(sandbox, OciEnvironment)
    sandbox._machine = Machine(image_cache)
    sandbox._machine.disks = DiskImages(tmp_path / "no such directory")
    try:
        await sandbox.start(force_build=False)
        assert "storage: watched, offenders are killed" in sandbox.facts.protections
        assert [line for line in sandbox.facts.not_applied if line.startswith("disk image: ")]
        assert (await sandbox.exec("dd if=/dev/zero of=/fine bs=1M count=20; sleep 1; echo fine")).stdout == "fine\n"
        await _is_stopped(sandbox)
    finally:
        await sandbox.stop(delete=True)


@pytest.mark.engine
async def test_docker_counts_deleted_files(make: Make) -> None:
    sandbox = await make(storage_mb=64)
    await _is_stopped(sandbox)


@pytest.fixture
def workplace(tmp_path: Path, image_cache: Path, request: pytest.FixtureRequest) -> Workplace:
    return Workplace(tmp_path, image_cache, request.getfixturevalue("container_engine"))


async def _is_stopped(sandbox: Sandbox) -> None:
    try:
        assert (await sandbox.exec(UNLINKED)).return_code == 137
    except SandboxFault as fault:
        assert "64 MB" in str(fault)
    assert sandbox.facts.limits["storage_exceeded_mb"] > 64
