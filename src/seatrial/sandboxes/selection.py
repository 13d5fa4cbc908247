"""Chooses the sandbox of a trial: ``auto`` is ``oci`` if all of it works here, else ``docker``, else an error.

The runner asks for each trial, and so does ``seatrial doctor``. The machine is examined once per process.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

from seatrial.domain.frozen import Frozen
from seatrial.domain.sandbox_choice import AUTOMATIC, SEVERAL_CONTAINERS, needs_several_containers
from seatrial.domain.task import Task
from seatrial.errors import SetupProblem, Unsupported
from seatrial.sandboxes.options import SandboxOptions

_USUAL_SOCKET = "/var/run/docker.sock"


class Finding(Frozen):
    """Whether one thing works on this machine, for ``seatrial doctor``."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    """The command that fixes it."""
    needed: bool = True
    """Whether the sandbox needs it. If not, ``detail`` says what is done instead."""


class SandboxFindings(Frozen):
    """One kind of sandbox on this machine."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def works(self) -> bool:
        return all(finding.ok or not finding.needed for finding in self.findings)


class Health(Frozen):
    kinds: tuple[SandboxFindings, ...]
    automatic: str | None
    """What ``--sandbox auto`` means here."""


class SandboxSelection:
    """Resolves the requested name into a sandbox that works here."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._automatic: asyncio.Task[str] | None = None

    async def choose(self, wanted: str, task: Task) -> str:
        if needs_several_containers(wanted, task):
            if not await engine_answers(self._options.docker_host):
                raise Unsupported(
                    f"Task {task.name} has several services ({', '.join(task.services)}) and needs a container engine.",
                    fix="Start Docker or Podman.",
                )
            return SEVERAL_CONTAINERS
        if wanted != AUTOMATIC:
            return wanted
        if self._automatic is None or _failed(self._automatic):
            self._automatic = asyncio.create_task(self._find())
        return await asyncio.shield(self._automatic)

    async def _find(self) -> str:
        health = await examine(self._options)
        if health.automatic is None:
            findings = [finding for kind in health.kinds for finding in kind.findings]
            fixes = [finding.fix for finding in findings if finding.fix and not finding.ok]
            raise SetupProblem("No sandbox works on this machine.", fix=" ".join(fixes) or "Run `seatrial doctor`.")
        return health.automatic


def _failed(task: asyncio.Task[str]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def examine(options: SandboxOptions) -> Health:
    from seatrial.sandboxes.docker.probe import probe as probe_docker
    from seatrial.sandboxes.oci.probe import probe as probe_oci

    kinds = (
        SandboxFindings(name="oci", findings=tuple(await probe_oci(options))),
        SandboxFindings(name="docker", findings=tuple(await probe_docker(options))),
    )
    return Health(kinds=kinds, automatic=next((kind.name for kind in kinds if kind.works), None))


async def engine_answers(docker_host: str, for_others: bool = False) -> bool:
    """Whether something listens where the container engine should. In a thread: connecting may take a second.
    ``for_others``: an engine that this process may not use counts, because workers may."""
    return await asyncio.to_thread(engine_listens, docker_host, for_others)


def engine_listens(docker_host: str, for_others: bool = False) -> bool:
    """``engine_answers`` for callers without an event loop."""
    address = urlsplit(docker_host or f"unix://{_USUAL_SOCKET}")
    try:
        if address.scheme == "unix":
            if not Path(address.path).is_socket():
                return False
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(1)
                probe.connect(address.path)
        else:
            socket.create_connection((address.hostname or "localhost", address.port or 2375), timeout=1).close()
    except PermissionError:
        return for_others
    except OSError:
        return False
    return True
