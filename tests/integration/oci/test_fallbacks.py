"""Machines that lack something: the sandbox still works where it can, and says what it did without."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import SandboxFault, SetupProblem
from seatrial.sandboxes.host.cgroups import Cgroups, Hierarchies, Limits
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES
from seatrial.sandboxes.host.root_mount import RootKind, RootMount
from seatrial.sandboxes.images.assembly import shared_oci_images
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.oci.command import Call
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import Pod
from seatrial.sandboxes.oci.pod_plan import PodPlan
from seatrial.sandboxes.oci.runtime import Runtime
from seatrial.sandboxes.options import Owner, SandboxOptions
from tests.trials import Workplace

pytestmark = pytest.mark.sandbox

LIMITS = Limits(cpus=1, memory_mb=256, pids=128, storage_mb=1024)


@pytest.fixture
async def image(workplace: Workplace) -> Image:
    options = SandboxOptions(cache=workplace.cache)
    sandbox = workplace.sandbox()
    return await shared_oci_images(options).resolver.resolve(sandbox._definition.image_request(force_build=False))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """One of this test alone, so that parts can be taken from it."""
    yield Machine(tmp_path / "machine")


async def _run(machine: Machine, image: Image, command: str) -> tuple[Pod, str]:
    """Starts a pod, runs one command in the agent's and one in the verifier's view, and stops it."""
    plan = PodPlan(sandbox="st-fallback", owner=Owner(), image=image, limits=LIMITS, hosts="127.0.0.1 localhost\n")
    pod = Pod(machine, plan)
    try:
        await machine.mounts.carry(pod.start)
        said = ""
        for view in ("agent", "grading"):
            call = Call(["bash", "-c", command], {}, "/", None)
            running = await machine.mounts.start(pod.spawn, view, call)
            running.listen()
            ended = await running.wait()
            running.close()
            assert not ended.fault, ended.fault
            said += ended.stdout
        return pod, said
    finally:
        await machine.mounts.carry(pod.stop)
        assert not pod.directory.exists()


@pytest.mark.parametrize("kind", ["overlay", "fuse-overlayfs", "copy"])
async def test_every_kind_of_root_is_writable_and_leaves_layers_alone(
    machine: Machine, tmp_path: Path, kind: RootKind
) -> None:
    await machine.mounts.carry(_check_root, tmp_path, kind)


def _check_root(directory: Path, kind: RootKind) -> None:
    lower, upper = directory / "lower", directory / "upper"
    for layer in (lower, upper):
        (layer / "kept").mkdir(parents=True)
    (lower / "kept" / "old").write_text("lower")
    (lower / "kept" / "both").write_text("lower")
    (lower / "gone").write_text("hidden by the upper layer")
    (lower / "link").symlink_to("kept/old")
    (upper / "kept" / "both").write_text("upper")
    (upper / "kept" / "both").chmod(0o750)
    os.mknod(upper / "gone", stat.S_IFCHR, os.makedev(0, 0))
    root = RootMount(_made(directory / "sandbox"))
    try:
        assert root.make([upper, lower], [kind]) == kind
        assert (root.merged / "kept" / "old").read_text() == "lower"
        assert (root.merged / "kept" / "both").read_text() == "upper"
        assert stat.S_IMODE((root.merged / "kept" / "both").stat().st_mode) == 0o750
        assert (root.merged / "link").read_text() == "lower"
        assert not (root.merged / "gone").exists()
        (root.merged / "kept" / "old").write_text("changed")
        assert (lower / "kept" / "old").read_text() == "lower"
    finally:
        root.hide()
        root.end()
    assert str(root.merged) not in Path("/proc/thread-self/mountinfo").read_text()


async def test_every_kind_is_tried(machine: Machine, tmp_path: Path) -> None:
    root = RootMount(_made(tmp_path / "sandbox"))
    with pytest.raises(SandboxFault, match=r"(?s)overlay: .*fuse-overlayfs: .*copy: "):
        await machine.mounts.carry(root.make, [tmp_path / "no-such-layer"])


async def test_without_cgroups_it_runs_and_says_so(machine: Machine, image: Image) -> None:
    machine.__dict__["cgroups"] = Cgroups(Hierarchies(), "cgroups cannot be written here")
    probe = "mknod /tmp/disk b 254 0 && echo made; head -c1 /tmp/disk && echo read; echo ran"
    pod, said = await _run(machine, image, probe)
    assert said == "ran\nran\n"
    assert pod.findings.not_applied == ["limits not enforced: cgroups cannot be written here"]
    assert not pod.findings.limited
    assert set(machine.confinement.capabilities) == set(DOCKER_CAPABILITIES) - {"CAP_MKNOD"}


async def test_with_cgroups_limits_are_real(machine: Machine, image: Image) -> None:
    """The control: the same pod where cgroups can be written."""
    shown = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
    pod, said = await _run(machine, image, shown)
    assert said == f"{256 << 20}\n" * 2
    assert pod.findings.limited and not pod.findings.not_applied


async def test_runc_serves_as_well(machine: Machine, image: Image) -> None:
    path = shutil.which("runc")
    assert path is not None
    machine.__dict__["runtime"] = Runtime(path=path, version="runc", is_crun=False)
    status = "grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status"
    probe = f"{status}; mount -t tmpfs none /mnt 2>/dev/null || echo refused"
    pod, said = await _run(machine, image, probe)
    assert said == "CapEff:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\nrefused\n" * 2
    assert pod.findings.limited and not pod.findings.not_applied


async def test_device_nodes_of_an_image_are_dead(machine: Machine, image: Image, tmp_path: Path) -> None:
    """Without a device filter the mount itself has to see to it."""
    machine.__dict__["cgroups"] = Cgroups(Hierarchies(), "none")
    layer = _made(tmp_path / "layer")
    os.mknod(layer / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    hostile = image.model_copy(update={"layers": (layer, *image.layers)})
    _, said = await _run(machine, hostile, "echo x > /null && echo opened; echo x > /dev/null && echo harmless")
    assert said == "harmless\n" * 2


def test_missing_runtime_has_one_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupProblem, match="apt-get install crun"):
        Runtime.found()


async def test_image_with_a_link_where_a_directory_has_to_be(machine: Machine, image: Image, tmp_path: Path) -> None:
    layer = _made(tmp_path / "layer")
    (layer / "logs").symlink_to("/etc")
    hostile = image.model_copy(update={"layers": (layer, *image.layers)})
    with pytest.raises(SandboxFault, match="link at /logs"):
        await _run(machine, hostile, "true")


def _made(path: Path) -> Path:
    path.mkdir()
    return path
