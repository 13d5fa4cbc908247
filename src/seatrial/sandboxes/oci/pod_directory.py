"""The directory of one pod, and what is mounted and written there before its containers start.

``pod`` makes it in a thread of ``PrivateMounts``. The containers take the mounts over; from then on nothing of them is
left in this process's sight.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.private_mounts import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, unmount
from seatrial.sandboxes.host.root_mount import RootKind, RootMount
from seatrial.sandboxes.oci.cgroups import ROOM, Cage
from seatrial.sandboxes.oci.container_spec import GUARDED, Layout
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod_plan import PodPlan


class PodDirectory:
    """One pod's own directory. Blocking."""

    def __init__(self, machine: Machine, plan: PodPlan) -> None:
        self.directory = machine.run_dir / plan.sandbox
        self.root = RootMount(self.directory)
        self._machine = machine
        self._plan = plan
        self._shared_memory = self.directory / "shm"
        self._memory_dirs = {
            wanted: self.directory / f"memory{number}" for number, wanted in enumerate(plan.memory_dirs)
        }

    def make_root(self) -> RootKind:
        return self.root.make(self._plan.image.layers)

    def furnish(self, cage: Cage) -> Layout:
        """Everything that the two containers are started on. ``hide`` belongs to it, whether it succeeds or not."""
        tests, verifier = self.directory / "tests", self.directory / "verifier"
        for path in (self._shared_memory, tests, verifier):
            path.mkdir()
        verifier.chmod(0o777)
        with self._machine.mounts.rooted(self.root.merged):
            _make_dirs(self._plan)
        if any((self.root.merged / "tests").iterdir()):
            shutil.copytree(self.root.merged / "tests", tests, symlinks=True, dirs_exist_ok=True)
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
            limits=cage.shown,
            grading_mounts={"/tests": tests, "/logs/verifier": verifier},
            cgroups_above="" if self._machine.runtime.is_crun else f"/{ROOM}/{self._plan.sandbox}",
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
            wanted.make(place)

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o644)
        return path


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
