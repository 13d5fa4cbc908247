"""gVisor by a setting: what holds instead of the promises that it keeps another way, and a whole trial on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.oci.environment import OciEnvironment
from tests.command_line import SAMPLES, CommandLine
from tests.contracts.sandbox.kinds import KINDS, Place, Wish
from tests.contracts.sandbox.test_limits import EAT, FORK, HEAVY_SEC
from tests.host_processes import processes_with

pytestmark = pytest.mark.sandbox
shared_loop = pytest.mark.asyncio(loop_scope="module")

_PIDS = 64
# By way of a user namespace of its own, in which it may mount.
_LIFT_LIMIT = "unshare -Urm sh -c 'mount -t cgroup -o pids none /mnt && echo 9999 > /mnt/*-agent/pids.max'"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> AsyncIterator[OciEnvironment]:
    place = Place(tmp_path_factory.mktemp("gvisor"), image_cache)
    nothing = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
    wish = Wish(cpus=1, memory_mb=192, network=nothing, options={"default_pids": _PIDS})
    made = KINDS["oci:runsc"].create(place, wish)
    assert isinstance(made, OciEnvironment)
    await made.start(force_build=False)
    yield made
    await made.stop(delete=True)


@shared_loop
async def test_the_kernel_is_gvisors(sandbox: OciEnvironment) -> None:
    assert "4.4.0" in ((await sandbox.exec("cat /proc/version")).stdout or "")
    said = " ".join(sandbox.facts.protections)
    assert "runsc version" in said and "gVisor (systrap)" in said
    assert any("process numbers" in line for line in sandbox.facts.not_applied)


@shared_loop
async def test_process_limit_holds_roughly_and_cannot_be_lifted(sandbox: OciEnvironment) -> None:
    assert (await sandbox.exec(f"{FORK} 20")).stdout == "20"
    assert (await sandbox.exec(_LIFT_LIMIT)).return_code != 0
    assert (await sandbox.exec("echo 9999 > /sys/fs/cgroup/pids/pids.max")).return_code != 0
    started = int((await sandbox.exec(f"{FORK} 500", timeout_sec=HEAVY_SEC)).stdout or 0)
    assert 20 < started < 2 * _PIDS


@shared_loop
async def test_processors_are_limited_from_outside(sandbox: OciEnvironment) -> None:
    """By a group of the machine's kernel, in which gVisor itself is: nothing inside can change or leave it."""
    pod = sandbox._pod
    assert pod is not None
    groups = [path for path in pod.cgroups.visible.values() if _processors(path)]
    assert [_processors(path) for path in groups] == [1.0]
    members = {int(pid) for path in groups[0].rglob("cgroup.procs") for pid in path.read_text().split()}
    assert members.intersection(processes_with("runsc"))


@shared_loop
async def test_memory_kill_ends_one_program_and_is_told(sandbox: OciEnvironment) -> None:
    assert (await sandbox.exec("exit 137")).return_code == 137
    assert not sandbox.facts.memory_killed
    assert (await sandbox.exec(EAT.format(megabytes=300), timeout_sec=HEAVY_SEC)).return_code != 0
    assert sandbox.facts.memory_killed
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


@shared_loop
async def test_filling_gvisors_own_memory_is_no_fault_of_the_sandbox(sandbox: OciEnvironment) -> None:
    """Its ``/dev`` has no limit but that of all. Who ended the sandbox by it would be tried again, were it a fault."""
    await sandbox.exec("echo kept > /app/work")
    assert (await sandbox.exec("head -c 300M /dev/zero > /dev/big", timeout_sec=HEAVY_SEC)).return_code != 0
    assert (await sandbox.exec("cat /app/work")).stdout == "kept\n"
    assert sandbox.facts.memory_killed


@shared_loop
async def test_socket_of_a_service_is_there_for_the_verifier(sandbox: OciEnvironment, tmp_path: Path) -> None:
    """The last test of this sandbox: it begins grading."""
    serve = (
        "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => q(/app/s), Listen => 5) or die;"
        " while (my $c = $s->accept) { print $c qq(served\\n); close $c }"
    )
    ask = "perl -e 'use IO::Socket::UNIX; my $c = IO::Socket::UNIX->new(Peer => q(/app/s)) or die; print <$c>'"
    await sandbox.exec(f"mkdir -p /logs/verifier; perl -e '{serve}' >/dev/null 2>&1 & until [ -S /app/s ]; do :; done")
    assert (await sandbox.exec(ask)).stdout == "served\n"
    (tmp_path / "tests").mkdir()
    await sandbox.upload_dir(source_dir=tmp_path / "tests", target_dir="/tests")
    assert (await sandbox.exec(ask)).stdout == "served\n"


def test_a_trial_passes_and_its_lock_names_the_runtime(cli: CommandLine) -> None:
    done = cli("run", SAMPLES / "answer-file", "-a", "oracle", "-e", "oci", "--json", SEATRIAL_OCI_RUNTIME="runsc")
    (row,) = done.json()["results"]
    assert (row["outcome"], row["reward"]) == ("passed", 1.0)
    lock = cli.json("trial", "show", str(row["trial"]))["result"]["lock"]
    assert any("runsc version" in line for line in lock["protections"])


def _processors(group: Path) -> float | None:
    """How many processors the kernel gives to this group; ``None`` if another group decides."""
    if (group / "cpu.max").exists():
        quota, period = (group / "cpu.max").read_text().split()
    elif (group / "cpu.cfs_quota_us").exists():
        quota, period = (group / "cpu.cfs_quota_us").read_text(), (group / "cpu.cfs_period_us").read_text()
    else:
        return None
    return int(quota) / int(period)
