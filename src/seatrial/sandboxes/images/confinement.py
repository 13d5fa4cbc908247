"""What a build cannot reach. ``buildah`` names the commands, ``jail`` confines them.

A security hole in buildah must not be one in this machine. So every buildah that reads a task author's files, or layers
from a registry, runs in a separate root with:

* files: buildah and its libraries, read-only; the store of finished images, read-only; a disk for this build only,
  with a fixed size. A second buildah, which runs none of the author's commands, copies the result into the store;
* processes, IPC, host name, mounts: separate ones, which the kernel ends with the builder;
* network: the public internet and nothing of this machine (see ``build_network``), or none;
* memory, processors, processes: a cgroup, with a device filter if the machine has one;
* capabilities: few for the builder (see ``jail``), and those below for ``RUN``. buildah adds its seccomp filter and
  masked paths.

Not confined: through a hole in buildah, a build could read the store of finished images. Builds have no user namespace,
because in one the kernel ignores the marks for files that a layer deleted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.host.cgroups import Cgroups, Limits
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES
from seatrial.sandboxes.images import commands, jail
from seatrial.sandboxes.images.build_network import BuildLine
from seatrial.sandboxes.images.image import LogSink
from seatrial.sandboxes.parsed_file import read_or_empty
from seatrial.sandboxes.terminal.bundle import libraries_of

CAPABILITIES = tuple(
    name
    for name in DOCKER_CAPABILITIES
    if name not in ("CAP_SYS_CHROOT", "CAP_MKNOD", "CAP_NET_RAW", "CAP_AUDIT_WRITE")
)
"""Docker's default set without those that lead out of a chroot (SYS_CHROOT, MKNOD) or that no build needs."""

_END_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""If the worker is killed, the kernel kills the builder, and with its namespace everything else."""
_OWN_MOUNTS = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_CERTIFICATES = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates")
_REGISTRIES = ("/etc/containers", "/usr/share/containers")
_NETAVARK = ("/usr/libexec/podman/netavark", "/usr/lib/podman/netavark")
"""Since 1.38, buildah starts nothing if this program is missing, although our builds never use it."""
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/false\n",
    "/etc/group": "root:x:0:\n",
    "/etc/hosts": "127.0.0.1 localhost build\n",
}
_ANY_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}\n'


class BuildLimits(Frozen):
    """What one build may use."""

    cpus: float = 0.0
    """0 for all of the machine's."""
    memory_mb: int = 8192
    pids: int = 4096
    disk_mb: int = 20480


class ConfinedCall(Frozen):
    """A call of buildah, and the files and network that it gets."""

    argv: tuple[str, ...]
    env: dict[str, str]
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    renamed: dict[Path, Path] = {}
    """Folders and files that it may read at another path: the path, and their real place."""
    line: BuildLine = BuildLine(description="none", namespace=None)
    asks_registries: bool = False
    """Whether it reads this machine's own registry settings."""
    makes_nodes: bool = False

    def step(self, program: Sequence[str], cgroup_files: Sequence[Path]) -> jail.Step:
        names = self.line.resolv_conf or (read_or_empty("/etc/resolv.conf") if self.line.machine else "")
        files = {**_FILES, "/etc/resolv.conf": names}
        own: tuple[str, ...] = _CERTIFICATES
        if self.asks_registries:
            own += _REGISTRIES
        else:
            files["/etc/containers/policy.json"] = _ANY_POLICY
            own += ("/usr/share/containers/seccomp.json",)
        return jail.Step(
            argv=(program[0], *self.argv),
            env=self.env,
            readable=(*program, *own, *map(str, self.readable)),
            writable=tuple(map(str, self.writable)),
            renamed={str(path): str(source) for path, source in self.renamed.items()},
            files=files,
            network=self.line.connected,
            cgroup_files=tuple(map(str, cgroup_files)),
            makes_nodes=self.makes_nodes,
        )


class Confinement:
    """Prepares what ``jail`` needs: the builder's program with its libraries, a disk, a cgroup."""

    def __init__(self, environ: Mapping[str, str], limits: BuildLimits) -> None:
        self._environ = dict(environ)
        self._limits = limits
        self._program: tuple[str, ...] = ()

    @asynccontextmanager
    async def command(self, scratch: Path, calls: Sequence[ConfinedCall], log: LogSink) -> AsyncIterator[list[str]]:
        """The command line that runs the calls one after the other. ``scratch`` is a folder for these calls only."""
        program = await self._buildah()
        root, disk = scratch / "root", scratch / "disk"
        for folder in (root, disk):
            folder.mkdir(exist_ok=True)
        image = await self._disk_image(scratch, log) if any(disk in call.writable for call in calls) else ""
        cgroups = Cgroups.found()
        own_cgroups = cgroups.of(f"build-{uuid.uuid4().hex[:12]}")
        if cgroups.problem:
            log(f"Memory, processors and processes of the build are not limited: {cgroups.problem}\n")
        cpus, memory_mb = self._limits.cpus or float(os.cpu_count() or 1), self._limits.memory_mb
        limits = Limits(cpus=cpus, memory_mb=memory_mb, pids=self._limits.pids, storage_mb=self._limits.disk_mb)
        await asyncio.to_thread(own_cgroups.make, limits)
        try:
            cgroup_files = list(own_cgroups.entry_files("agent"))
            steps = tuple(call.step(program, cgroup_files) for call in calls)
            plan = json.dumps(dataclasses.asdict(jail.Plan(str(root), str(disk), image, steps)))
            namespaces = [f"--net={call.line.namespace}" for call in calls if call.line.namespace]
            network = ["nsenter", *namespaces[:1], "--"] if namespaces else []
            yield [*_END_WITH_PARENT, *network, *_OWN_MOUNTS, "--", sys.executable, "-I", "-S", jail.__file__, plan]
        finally:
            await asyncio.shield(asyncio.to_thread(own_cgroups.remove))

    async def _disk_image(self, scratch: Path, log: LogSink) -> str:
        """A sparse file with a file system of the size that a build may use."""
        path = scratch / "disk.ext4"
        with path.open("wb") as file:
            file.truncate(self._limits.disk_mb << 20)
        argv = ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", str(path)]
        able = Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4", path=self._environ.get("PATH"))
        if able and (await commands.run(argv, self._environ)).ok:
            return str(path)
        path.unlink()
        log("The build's disk is not limited: this machine has no loop devices or no mkfs.ext4.\n")
        return ""

    async def _buildah(self) -> tuple[str, ...]:
        """The program and every library that it loads, by path."""
        if not self._program:
            commands.require("buildah", self._environ)
            path = shutil.which("buildah", path=self._environ.get("PATH")) or ""
            network = [place for place in _NETAVARK if Path(place).exists()]
            self._program = (path, *map(str, await asyncio.to_thread(libraries_of, Path(path))), *network)
        return self._program


def own_mounts(argv: Sequence[str]) -> list[str]:
    """For trusted tools: their mounts and processes end with them."""
    return [*_END_WITH_PARENT, *_OWN_MOUNTS, "--", *argv]
