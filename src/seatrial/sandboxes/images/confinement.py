"""What a build cannot reach. ``buildah`` says what it wants to run; ``jail`` puts the walls around it.

A hole in buildah must not be a hole in this machine, so every buildah that reads what a task's author wrote, or layers
that a registry sent, runs in a root of its own:

* files: buildah and its libraries, read-only; the store of finished images, read-only; one disk of this build alone,
  with a fixed size. The result is taken into the store by a second buildah that runs nothing of the author's;
* processes, IPC, host name, mounts: its own, ended by the kernel with the builder;
* network: the public internet and nothing of this machine (see ``build_network``), or none;
* memory, processors, processes: a cgroup, with a device filter where the machine has one;
* capabilities: the builder's are few (see ``jail``), those of ``RUN`` are the ones below. buildah adds its seccomp
  filter and masked paths.

Not walled off: a build may read the store of finished images if buildah has a hole. Builds have no user namespace: in
one, the kernel does not read the marks that say what a base image's layers deleted.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.errors import SetupProblem
from seatrial.sandboxes.images import commands, jail
from seatrial.sandboxes.images.build_network import BuildLine
from seatrial.sandboxes.images.image import LogSink
from seatrial.sandboxes.oci.cgroups import Cgroups, Limits

CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
)
"""Docker's default set without what leads out of a chroot (SYS_CHROOT, MKNOD) or is of no use in a build."""

_MORTAL = ("setpriv", "--pdeathsig", "KILL", "--")
"""A worker that is killed takes the builder with it, and the builder's namespace everything else."""
_OWN_MOUNTS = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_CERTIFICATES = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates")
_REGISTRIES = ("/etc/containers", "/usr/share/containers")
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


class Wanted(Frozen):
    """A call of buildah and what it needs to see."""

    argv: tuple[str, ...]
    env: dict[str, str]
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    renamed: dict[Path, Path] = {}
    """Folders and files that it may read at another path than their own."""
    line: BuildLine = BuildLine(description="none", namespace=None)
    asks_registries: bool = False
    """Whether it reads this machine's own registry settings."""
    makes_nodes: bool = False

    def step(self, program: Sequence[str], doors: Sequence[Path]) -> jail.Step:
        names = self.line.resolv_conf or (_read("/etc/resolv.conf") if self.line.machine else "")
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
            doors=tuple(map(str, doors)),
            makes_nodes=self.makes_nodes,
        )


class Jailer:
    """Prepares what ``jail`` needs: the builder's program with its libraries, a disk, a cgroup."""

    def __init__(self, environ: Mapping[str, str], limits: BuildLimits) -> None:
        self._environ = dict(environ)
        self._limits = limits
        self._program: tuple[str, ...] = ()

    @property
    def limits(self) -> BuildLimits:
        return self._limits

    @asynccontextmanager
    async def command(self, scratch: Path, wanted: Sequence[Wanted], log: LogSink) -> AsyncIterator[list[str]]:
        """The command line that runs them one after the other. ``scratch`` is a folder of these calls alone."""
        program = await self._buildah()
        root, disk = scratch / "root", scratch / "disk"
        for folder in (root, disk):
            folder.mkdir(exist_ok=True)
        image = await self._disk_image(scratch, log) if any(disk in each.writable for each in wanted) else ""
        cgroups = Cgroups.found()
        own_cgroups = cgroups.of(f"build-{uuid.uuid4().hex[:12]}")
        if cgroups.problem:
            log(f"Memory, processors and processes of the build are not limited: {cgroups.problem}\n")
        await asyncio.to_thread(own_cgroups.make, self._cgroup_limits())
        try:
            doors = list(own_cgroups.entry_files("agent"))
            plan = {
                "root": str(root),
                "disk": str(disk),
                "disk_image": image,
                "steps": [_plain(each.step(program, doors)) for each in wanted],
            }
            entered = [f"--net={each.line.namespace}" for each in wanted if each.line.namespace]
            network = ["nsenter", *entered[:1], "--"] if entered else []
            yield [*_MORTAL, *network, *_OWN_MOUNTS, "--", sys.executable, "-I", "-S", jail.__file__, json.dumps(plan)]
        finally:
            await asyncio.shield(asyncio.to_thread(own_cgroups.remove))

    def _cgroup_limits(self) -> Limits:
        limits = self._limits
        return Limits(
            cpus=limits.cpus or _cores(), memory_mb=limits.memory_mb, pids=limits.pids, storage_mb=limits.disk_mb
        )

    async def _disk_image(self, scratch: Path, log: LogSink) -> str:
        """A sparse file with a file system of the size that a build may fill."""
        path = scratch / "disk.ext4"
        with path.open("wb") as file:
            file.truncate(self._limits.disk_mb << 20)
        argv = ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", str(path)]
        if Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4", path=self._environ.get("PATH")):
            ended = await commands.run(argv, self._environ, _nowhere)
            if ended.ok:
                return str(path)
        path.unlink()
        log("The build's disk is not limited: this machine has no loop devices or no mkfs.ext4.\n")
        return ""

    async def _buildah(self) -> tuple[str, ...]:
        """The program and every library that it loads, by path."""
        if not self._program:
            commands.require("buildah", self._environ)
            path = shutil.which("buildah", path=self._environ.get("PATH")) or ""
            heard: list[str] = []
            ended = await commands.run(["ldd", path], self._environ, heard.append)
            libraries = re.findall(r"(?:=> )?(/\S+) \(0x", "".join(heard))
            if not ended.ok and "not a dynamic executable" not in "".join(heard):
                raise SetupProblem(f"The libraries of {path} could not be listed: {ended.tail.strip()}")
            self._program = (path, *libraries)
        return self._program


def _plain(step: jail.Step) -> dict[str, object]:
    return {name: getattr(step, name) for name in jail.Step.__dataclass_fields__}


def _cores() -> float:
    return float(os.cpu_count() or 1)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def own_mounts(argv: Sequence[str]) -> list[str]:
    """For our own tools: mounts that vanish with them, and no process that outlives them."""
    return [*_MORTAL, *_OWN_MOUNTS, "--", *argv]


def _nowhere(_: str) -> None:
    """For commands whose output nobody asked for."""
