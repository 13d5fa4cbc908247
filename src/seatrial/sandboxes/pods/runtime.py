"""The container runtime of this machine, crun or runc: how it is found and how it is called."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SetupProblem

PROCESS_FD = 3
"""Descriptor at which the runtime finds the description of a command, so that it never stands in an argument list."""
LOG_FD = 4
"""Descriptor for the runtime's own errors, so that they are told from the command's."""

FIX = "Run: apt-get install crun busybox-static"


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime, used by ``pod`` and ``command``."""

    path: str
    version: str

    @classmethod
    def found(cls) -> Runtime:
        for name in ("crun", "runc"):
            path = shutil.which(name)
            if path is not None:
                shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
                if shown.returncode == 0:
                    return cls(path=path, version=shown.stdout.splitlines()[0])
        raise SetupProblem("No container runtime (crun or runc) works on this machine.", fix=FIX)

    @property
    def is_crun(self) -> bool:
        return Path(self.path).name == "crun"

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


def busybox() -> Path:
    """A static busybox, the first process of every sandbox: it must run in any image."""
    path = shutil.which("busybox")
    if path is None:
        raise SetupProblem("busybox is not installed on this machine.", fix=FIX)
    return Path(path).resolve()
