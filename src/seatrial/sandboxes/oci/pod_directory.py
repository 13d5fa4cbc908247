"""The directory of one pod, and what is mounted and written there before its containers start.

``pod`` makes it in a thread of ``PrivateMounts``. The containers take the mounts over; from then on this process does
not see them any more. Whatever the sandbox can write to is on a disk image of its own (``disk_image``), where the
machine can make one.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.cgroups import PARENT_GROUP, SandboxCgroups
from seatrial.sandboxes.host.in_root import SandboxRoot, closing
from seatrial.sandboxes.host.private_mounts import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, unmount
from seatrial.sandboxes.host.root_mount import RootKind, RootMount
from seatrial.sandboxes.host.tree_copy import UPLOAD, Budget, TreeCopy
from seatrial.sandboxes.host.tree_size import measure
from seatrial.sandboxes.oci.container_spec import GUARDED, Layout
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod_plan import PodPlan
from seatrial.system.removal import remove_tree


class PodDirectory:
    """One pod's own directory. Blocking."""

    def __init__(self, machine: Machine, plan: PodPlan) -> None:
        self.directory = machine.run_dir / plan.sandbox
        self.root = RootMount(self.directory)
        self.without_disk = ""
        """Why the sandbox has no disk of its own; empty if it has one."""
        self.copied_bytes = 0
        """What a copied root took from the beginning."""
        self._machine = machine
        self._plan = plan
        self._shared_memory = self.directory / "shm"
        self._memory_dirs = {
            wanted: self.directory / f"memory{number}" for number, wanted in enumerate(plan.memory_dirs)
        }

    @property
    def written(self) -> tuple[Path, ...]:
        """Everything that the sandbox can fill."""
        names = ("changes", "copy", "tests", "verifier", "hosts", "resolv.conf")
        return tuple(self.root.writable / name for name in names)

    def make_root(self) -> RootKind:
        layers = self._plan.image.layers
        if self._plan.final_state is not None:
            return self._restore_root(self._plan.final_state)
        self._make_disk(0)
        try:
            return self.root.make(layers, ("overlay", "fuse-overlayfs"))
        except SandboxFault as refusal:
            self.root.hide()
            self.root.end()
            # A copy of the image counts for nothing: it is no doing of the sandbox.
            self.copied_bytes = sum(measure(layer).size for layer in layers)
            self._make_disk(self.copied_bytes)
            try:
                return self.root.make(layers, ("copy",))
            except SandboxFault as last:
                raise SandboxFault(f"{refusal.message} {last.message}") from None

    def _restore_root(self, final_state: Path) -> RootKind:
        """The root as another sandbox left it, without what belonged to that one only."""
        place = self.directory / "disk"
        place.mkdir(exist_ok=True)
        try:
            disk = self._machine.disks.restore(place, self._plan.limits.storage_mb << 20, final_state)
        except (OSError, subprocess.SubprocessError) as problem:
            raise SandboxFault(f"The final state could not be restored: {problem}") from problem
        self.root.disk = disk
        for name in ("work", "tests", "verifier", "hosts", "resolv.conf"):
            if left := remove_tree(place / name):
                raise SandboxFault(f"The final state could not be restored: {left}")
        return self.root.make(self._plan.image.layers, ("overlay", "fuse-overlayfs"))

    def _make_disk(self, copied: int) -> None:
        place = self.directory / "disk"
        place.mkdir(exist_ok=True)
        limit = (self._plan.limits.storage_mb << 20) + copied + copied // 8
        self.root.disk = None
        try:
            self.root.disk = self._machine.disks.make(place, limit)
        except (OSError, subprocess.SubprocessError) as problem:
            self.without_disk = str(problem)

    def prepare(self, cgroups: SandboxCgroups) -> Layout:
        """Everything that the two containers are started on. ``hide`` belongs to it, whether it succeeds or not."""
        tests, verifier = self.root.writable / "tests", self.root.writable / "verifier"
        for path in (self._shared_memory, tests, verifier):
            path.mkdir()
        verifier.chmod(0o777)
        with self._machine.mounts.rooted(self.root.merged):
            _make_dirs(self._plan)
        _copy_tests(self.root.merged, tests)
        self._mount_memory()
        return Layout(
            sandbox=self._plan.sandbox,
            hostname=self._plan.hostname,
            root=self.root.merged,
            busybox=self._machine.busybox,
            hosts=self._write("hosts", self._plan.hosts),
            resolv_conf=self._write("resolv.conf", self._plan.resolv_conf),
            shared_memory=self._shared_memory,
            memory_mounts={wanted.target: (place, wanted.flags) for wanted, place in self._memory_dirs.items()},
            network=self._plan.network,
            host_network=self._plan.host_network,
            counts_processes=self._machine.aligns_processes,
            limits=cgroups.visible,
            grading_mounts={"/tests": tests, "/logs/verifier": verifier},
            cgroups_above="" if self._machine.runtime.is_crun else f"/{PARENT_GROUP}/{self._plan.sandbox}",
        )

    def hide(self) -> None:
        """Takes the mounts out of this process's sight; the containers keep theirs."""
        self.root.hide()
        for place in (self._shared_memory, *self._memory_dirs.values()):
            with suppress(OSError):  # it may not be mounted yet
                unmount(place)

    def _mount_memory(self) -> None:
        size = f"mode=1777,size={self._plan.shared_memory_mb}m"
        mount("shm", self._shared_memory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, size)
        for wanted, place in self._memory_dirs.items():
            place.mkdir()
            flags = MS_NOSUID | MS_NODEV | (0 if wanted.executable else MS_NOEXEC)
            mount("tmpfs", place, "tmpfs", flags, ",".join(("mode=1777", *wanted.options)))

    def _write(self, name: str, text: str) -> Path:
        path = self.root.writable / name
        path.write_text(text)
        path.chmod(0o644)
        return path


def _copy_tests(root: Path, tests: Path) -> None:
    """What the image has in ``/tests``, if anything; its device nodes and the like are no tests."""
    with (
        closing(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as image,
        SandboxRoot(image).directory("/tests") as origin,
        closing(os.open(tests, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as goal,
    ):
        TreeCopy("in", Budget(UPLOAD)).run(origin, goal)


def _make_dirs(plan: PodPlan) -> None:
    """Inside the root, before any process of the sandbox runs: directories that have to be there."""
    for path in map(Path, (*GUARDED, *plan.open_dirs)):
        for place in (*reversed(path.parents), path):
            if place.is_symlink():
                raise SandboxFault(f"The image has a link at {place}, where a directory has to be.")
        path.mkdir(parents=True, exist_ok=True)
    for path in map(Path, (*plan.open_dirs, "/logs/verifier")):
        path.chmod(0o777)
    if plan.workdir:
        Path(plan.workdir).mkdir(parents=True, exist_ok=True)
