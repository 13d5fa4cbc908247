"""The container runtime of this machine, crun, runc or gVisor's runsc: how it is found and how it is called."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SetupProblem

PROCESS_FD = 3
"""Descriptor at which the runtime finds the description of a command, so that it is never in an argument list."""
LOG_FD = 4
"""Descriptor for the runtime's own errors, so that they are not mixed with the command's."""

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

_KNOWN = ("crun", "runc")
_GVISOR = "runsc"
_OLDEST_GVISOR = 20240729
"""The release that this was tried with; that of Debian 12, of 2022, does not know the platform."""
_INSTALL_GVISOR = "Run scripts/install-gvisor.sh (on Debian 13: apt-get install runsc)"
FIX = "Run: apt-get install crun busybox-static"
_HANGS_SEC = 120
"""After this time a runtime that does not even tell its version hangs. A busy machine may take seconds for it."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime, used by ``pod`` and ``command``."""

    path: str
    version: str
    is_crun: bool
    is_gvisor: bool = False

    @classmethod
    def found(cls, wanted: str = "") -> Runtime:
        """The operator's choice, a name or a path; else the first one that works."""
        for name in (wanted,) if wanted else _KNOWN:
            _refuse_others(Path(name).name)
            path = shutil.which(name)
            if path is not None:
                shown = subprocess.run(
                    [path, "--version"], capture_output=True, text=True, check=False, timeout=_HANGS_SEC
                )
                if shown.returncode == 0:
                    is_crun = Path(name).name == "crun"
                    kept = sealed_copy(Path(path)) if is_crun else path
                    version, is_gvisor = shown.stdout.splitlines()[0], Path(name).name == _GVISOR
                    if is_gvisor:
                        _refuse_old_gvisor(version)
                    return cls(path=kept, version=version, is_crun=is_crun, is_gvisor=is_gvisor)
        if wanted:
            raise SetupProblem(
                f"The container runtime {wanted!r} does not work on this machine.",
                fix=f"{_INSTALL_GVISOR if Path(wanted).name == _GVISOR else 'Install it'}, or leave"
                " SEATRIAL_OCI_RUNTIME empty.",
            )
        raise SetupProblem("No container runtime (crun or runc) works on this machine.", fix=FIX)

    def run(self, state: Path, bundle: Path, container: str) -> list[str]:
        """Starts a container and returns; its first process is then in ``pid`` of the bundle."""
        place = ["--bundle", str(bundle), "--pid-file", str(bundle / "pid")]
        return [*self._call(state), "run", "--detach", *place, container]

    def exec(self, state: Path, container: str) -> list[str]:
        """Runs a command in a container, with the caller's input and output, and ends as it ends."""
        return [*self._call(state), "exec", "--process", f"/proc/self/fd/{PROCESS_FD}", container]

    def _call(self, state: Path) -> list[str]:
        cgroups = ["--cgroup-manager=disabled"] if self.is_crun else []
        log = ["--log", f"/proc/self/fd/{LOG_FD}", "--log-format", "text"]
        return [self.path, "--root", str(state), *cgroups, *log]


def _refuse_others(name: str) -> None:
    if name == _GVISOR and platform.machine() != "x86_64":
        raise SetupProblem(
            "gVisor (runsc) is offered on x86-64 only.",
            fix="Set SEATRIAL_OCI_RUNTIME to crun or runc, or leave it empty.",
        )
    if name not in (*_KNOWN, _GVISOR):
        raise SetupProblem(
            f"The container runtime {name!r} is not one that this sandbox knows.",
            fix="Set SEATRIAL_OCI_RUNTIME to crun, runc or runsc, or to the path of one of them.",
        )


def _refuse_old_gvisor(version: str) -> None:
    """Releases are named by their dates; one with another name is somebody's own build."""
    released = re.search(r"20\d{6}", version)
    if released is not None and int(released.group()) < _OLDEST_GVISOR:
        raise SetupProblem(
            f"This gVisor is too old: {version}. Releases before {_OLDEST_GVISOR} cannot start Seatrial's sandboxes.",
            fix=f"{_INSTALL_GVISOR}, or leave SEATRIAL_OCI_RUNTIME empty.",
        )


def sealed_copy(program: Path) -> str:
    """A copy of a program in memory that cannot be written to. It lasts as long as this process.

    crun never runs from a file that a container might overwrite: it copies itself into sealed memory and starts anew,
    at every call. Given such a copy from the beginning, it starts once and in half the time."""
    memory = os.memfd_create(program.name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with program.open("rb") as source, os.fdopen(memory, "wb", closefd=False) as copy:
        shutil.copyfileobj(source, copy)
    os.fchmod(memory, 0o700)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    return f"/proc/{os.getpid()}/fd/{memory}"


def busybox() -> Path:
    """A static busybox, the first process of every sandbox: it must run in any image."""
    path = shutil.which("busybox")
    if path is None:
        raise SetupProblem("busybox is not installed on this machine.", fix=FIX)
    return Path(path).resolve()
