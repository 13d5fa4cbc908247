"""Whether the daemonless sandbox works on this machine: for ``doctor``, for ``--sandbox auto`` and before a job."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from seatrial.errors import SandboxFault, SeatrialError, SetupProblem
from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.host.seccomp import seccomp_filter
from seatrial.sandboxes.network import probe as network_check
from seatrial.sandboxes.oci.gvisor import probe as gvisor_check
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.runtime import FIX, busybox
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import Finding
from seatrial.settings import Settings

_PROBED_BYTES = 64 << 20
_DISK_FIX = "Loop devices and mkfs.ext4 (apt-get install e2fsprogs) are needed."


def _need_root() -> str:
    if os.geteuid() != 0:
        raise SetupProblem("The oci sandbox needs root.", fix="Run as root, or use --sandbox docker.")
    return ""


@cache
def _need_mounts() -> str:
    """Tries it in a process of its own. A container without privileges has root, but no mounts."""
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupProblem(
            f"The oci sandbox needs mounts of its own: {done.stderr.strip()}.",
            fix="Start the container with --privileged, or use --sandbox docker.",
        )
    return ""


def _need_buildah() -> str:
    if (path := shutil.which("buildah")) is None:
        raise SetupProblem("buildah is not installed on this machine.", fix="Run: apt-get install buildah")
    return path


_NEEDED: dict[str, Callable[[SandboxOptions], str]] = {
    "root": lambda _: _need_root(),
    "mounts": lambda _: _need_mounts(),
    "container runtime": lambda options: Machine.shared(options.cache, options.oci_runtime).runtime.version,
    "static busybox": lambda _: str(busybox()),
    "seccomp profile": lambda _: f"{len(seccomp_filter(()).section['syscalls'])} rules",
    "buildah": lambda _: _need_buildah(),
}
"""Each returns what it found, or raises ``SetupProblem``."""


def require() -> None:
    """Raises ``SetupProblem`` for the first thing without which nothing works."""
    options = SandboxOptions.of(Settings())
    for find in _NEEDED.values():
        find(options)


async def probe(options: SandboxOptions) -> list[Finding]:
    """All findings, good and bad. Nothing else is tried without root or without mounts."""
    findings = []
    for name, find in _NEEDED.items():
        try:
            detail = await asyncio.to_thread(find, options)
            findings.append(Finding(name=name, ok=True, detail=detail))
        except SeatrialError as problem:
            findings.append(Finding(name=name, ok=False, detail=problem.message, fix=problem.fix or FIX))
            if name in ("root", "mounts"):
                return findings
    machine = Machine.shared(options.cache, options.oci_runtime)
    findings += [
        _limits(machine),
        await _overlay(options, machine),
        await _storage(machine),
        *await network_check.probe(options),
    ]
    if all(finding.ok for finding in findings if finding.needed) and machine.runtime.is_gvisor:
        findings.append(await gvisor_check.probe(machine))
    return findings


def _limits(machine: Machine) -> Finding:
    problem = machine.cgroups.problem
    detail = f"limits not enforced: {problem}" if problem else machine.cgroups.description
    return Finding(name="cgroup limits", ok=not problem, detail=detail, fix=machine.cgroups.fix, needed=False)


async def _overlay(options: SandboxOptions, machine: Machine) -> Finding:
    try:
        kind = await machine.mounts.carry(_try_root, options.run_dir)
    except (OSError, SandboxFault) as error:
        return Finding(name="root file system", ok=False, detail=str(error))
    detail = kind if kind == "overlay" else f"overlay is refused here; {kind} is used, which is slower"
    return Finding(name="root file system", ok=kind == "overlay", detail=detail, needed=False)


async def _storage(machine: Machine) -> Finding:
    try:
        await machine.mounts.carry(_try_disk, machine)
    except OSError as error:
        detail = f"watched, offenders are killed; a disk image cannot be made: {error}"
        return Finding(name="storage limit", ok=False, detail=detail, fix=_DISK_FIX, needed=False)
    return Finding(name="storage limit", ok=True, detail="image: the kernel holds each sandbox to its limit")


def _try_disk(machine: Machine) -> None:
    machine.run_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=machine.run_dir, prefix=".probe-") as scratch:
        machine.disks.make(Path(scratch), _PROBED_BYTES).end()


def _try_root(run_dir: Path) -> str:
    run_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=run_dir, prefix=".probe-") as scratch:
        layer = Path(scratch) / "layer"
        layer.mkdir()
        root = RootMount(Path(scratch))
        try:
            return root.make([layer])
        finally:
            root.hide()
            root.end()
