"""How gVisor's ``runsc`` is called, and what it leaves to read about the containers that it started."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.oci.runtime import LOG_FD, PROCESS_FD

PLATFORM = "systrap"
_MESSAGE = re.compile(r'"msg":"((?:[^"\\]|\\.)*)"')
_FLAGS = (
    f"--platform={PLATFORM}",
    # Connections are made by the machine's kernel in the sandbox's own network namespace. gVisor's own network would
    # take a copy of addresses and routes once, while a policy may give a sandbox its interface later.
    "--network=host",
    # Files are read and written where they are: this machine, the agent and the verifier see the same at any time.
    "--overlay2=none",
    "--file-access=shared",
    # A socket that the agent's service made is in the file system for the verifier, too. There are no others.
    "--host-uds=all",
    "--ignore-cgroups",
)


@dataclass(frozen=True, slots=True)
class Runsc:
    """The program, for the containers of one sandbox."""

    path: str
    state: Path

    def run(self, bundle: Path, container: str, *, detach: bool = True) -> list[str]:
        """Starts a container and returns, once it has ended if it is not detached. The process that holds the sandbox
        is in ``pid`` of the bundle."""
        place = ["--bundle", str(bundle), "--pid-file", str(bundle / "pid")]
        return [*self._call, "run", *(["--detach"] if detach else []), *place, container]

    def exec(self, container: str) -> list[str]:
        """Runs a command in a container and ends as it ends. The description at ``PROCESS_FD`` is then replaced by the
        number that the command has inside."""
        place = f"/proc/self/fd/{PROCESS_FD}"
        return [*self._call, "exec", "--process", place, "--internal-pid-file", place, container]

    def gofer(self, container: str, sandbox: str) -> int:
        """The process that has the container's file system mounted on this machine."""
        try:
            return int(json.loads((self.state / f"{container}_sandbox:{sandbox}.state").read_text())["goferPid"])
        except (OSError, ValueError, KeyError) as error:
            raise SandboxFault(f"The sandbox did not start: what runsc wrote cannot be read: {error}") from None

    @property
    def _call(self) -> list[str]:
        return [self.path, "--root", str(self.state), "--log", f"/proc/self/fd/{LOG_FD}", *_FLAGS]


def told(log: str) -> str:
    """What ``runsc`` logged, in words: it writes JSON objects one after another."""
    return "; ".join(json.loads(f'"{text}"') for text in _MESSAGE.findall(log)) or log


def number_inside(runtime_process: int) -> int | None:
    """The number that a command has inside, told by the process that runs it; ``None`` before it has begun."""
    try:
        text = Path(f"/proc/{runtime_process}/fd/{PROCESS_FD}").read_bytes()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def is_sandbox(process: int, directory: Path) -> bool:
    """Whether a process is the one that holds the sandbox of this directory."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0] == b"runsc-sandbox" and f"--root={directory / 'runtime'}".encode() in words
