"""Fault 9 on the daemonless sandbox: what a killed process left is found and removed; what is not ours stays."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.sandboxes.host.cgroups import PARENT_GROUP
from seatrial.sandboxes.oci.leftovers import Leftovers
from seatrial.sandboxes.record import SandboxRecord
from tests.command_line import image_cache_dir
from tests.trials import Workplace

pytestmark = pytest.mark.sandbox

_ROOT = Path(__file__).parents[3]


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Its images are shared. Its folder of sandboxes is not: workers of other tests clear away dead ones in theirs."""
    own = tmp_path / "cache"
    own.mkdir()
    (own / "images").symlink_to(image_cache_dir() / "images")
    return Workplace(tmp_path, own)


@pytest.fixture
def decoys(workplace: Workplace) -> Iterator[list[Path]]:
    """Somebody else's: a folder beside ours, a cgroup with a process in it, and that process."""
    folder = workplace.run_dir / f"decoy-{workplace.install}"
    folder.mkdir(parents=True)
    (folder / "precious").write_text("not ours")
    hierarchies = [path.parent for path in Path("/sys/fs/cgroup").glob("**/cgroup.procs")]
    cgroup = min(hierarchies, key=lambda path: len(path.parts)) / f"decoy-{workplace.install}"
    cgroup.mkdir()
    process = subprocess.Popen(["sleep", "600"], env={"PATH": "/usr/bin:/bin"})
    (cgroup / "cgroup.procs").write_text(str(process.pid))
    yield [folder / "precious", cgroup, Path(f"/proc/{process.pid}/stat")]
    process.kill()
    process.wait()
    cgroup.rmdir()
    (folder / "precious").unlink()
    folder.rmdir()


async def _killed_owner(workplace: Workplace) -> list[SandboxRecord]:
    """Three sandboxes whose process is gone."""
    arguments = [str(workplace.directory), str(workplace.cache), workplace.install]
    owner = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.oci.owner",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    assert owner.stdout is not None
    assert await asyncio.wait_for(owner.stdout.readline(), 200) == b"ready\n"
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    return _ours(Leftovers(workplace.run_dir).find(), workplace)


async def test_killed_process_leaves_nothing(workplace: Workplace, leftovers: Leftovers, decoys: list[Path]) -> None:
    records = await _killed_owner(workplace)
    assert len(records) == 3 and _processes(workplace)
    removed = await asyncio.to_thread(leftovers.remove)
    assert {record.sandbox for record in removed} >= {record.sandbox for record in records}
    for record in records:
        assert not (workplace.run_dir / record.sandbox).exists()
        assert not list(Path("/sys/fs/cgroup").glob(f"**/{PARENT_GROUP}/{record.sandbox}"))
        assert record.sandbox not in Path("/proc/self/mountinfo").read_text()
    assert not _processes(workplace)
    assert all(decoy.exists() for decoy in decoys)


async def test_strangers_with_an_old_number_stay(
    workplace: Workplace, leftovers: Leftovers, decoys: list[Path]
) -> None:
    """Process numbers are used again: an old record must not end a stranger."""
    (record, *others) = await _killed_owner(workplace)
    stranger = decoys[2].parent.name
    first = workplace.run_dir / record.sandbox / "grading" / "pid"
    real = first.read_text()
    first.write_text(stranger)
    await asyncio.to_thread(leftovers.remove)
    assert decoys[2].exists()
    assert not Path(f"/proc/{real}/cmdline").exists() or not Path(f"/proc/{real}/cmdline").read_text()
    assert not _ours(leftovers.sandboxes(), workplace), others


async def test_living_sandbox_stays_unless_abandoned(workplace: Workplace, leftovers: Leftovers) -> None:
    sandbox = workplace.sandbox()
    await sandbox.start(force_build=False)
    try:
        await asyncio.to_thread(leftovers.remove)
        await asyncio.to_thread(leftovers.remove, lambda record: record.owner.install == "another")
        assert (await sandbox.exec("echo here")).stdout == "here\n"
        gone = await asyncio.to_thread(leftovers.remove, lambda record: record.owner.install == workplace.install)
        assert [record.owner.try_number for record in gone] == [1]
    finally:
        await sandbox.stop(delete=True)
    assert not _ours(leftovers.sandboxes(), workplace)


def _ours(records: list[SandboxRecord], workplace: Workplace) -> list[SandboxRecord]:
    return [record for record in records if record.owner.install == workplace.install]


def _processes(workplace: Workplace) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(workplace.install.encode() + b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found
