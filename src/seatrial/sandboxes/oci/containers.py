"""The two running containers of one daemonless sandbox, and the processes in them. ``pod`` starts the containers."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.processes import children, has_ended, neighbours, send, shares_namespace, stat_of
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.oci.cgroups import VIEWS, SandboxCgroups
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.own_processes import OwnProcessesKilled

_ENDING_SEC = 20.0
_KILLING_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Container:
    """One running container."""

    name: str
    pid: int
    process: int
    """pidfd of its first process."""
    view: SandboxView
    """Its mount namespace, which remains even if an agent kills every process in it."""


class Containers:
    """Blocking; for threads of ``PrivateMounts``."""

    def __init__(self, machine: Machine, cgroups: SandboxCgroups) -> None:
        self._machine = machine
        self._cgroups = cgroups
        self._by_view: dict[str, Container] = {}

    def add(self, view: str, name: str, pid: int) -> Container:
        process = os.pidfd_open(pid)
        namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._by_view[view] = container = Container(name, pid, process, SandboxView(self._machine.mounts, namespace))
        return container

    def of(self, view: str) -> Container:
        try:
            return self._by_view[view]
        except KeyError:
            raise SandboxFault("The sandbox is not running.") from None

    def alive(self, view: str) -> bool:
        """Whether commands can run in a view. The agent can end its own first process, but not the grading one."""
        needed = [entry for name, entry in self._by_view.items() if name in (view, "grading")]
        return bool(needed) and not any(has_ended(entry.process, 0) for entry in needed)

    def check(self, view: str) -> None:
        """Raises ``OwnProcessesKilled`` or ``SandboxFault`` if no command can run."""
        if self.alive(view):
            return
        if self.alive("grading"):
            raise OwnProcessesKilled
        raise SandboxFault("The sandbox is broken: its processes are gone.")

    def processes(self, view: str) -> set[int]:
        return self._cgroups.processes(view) if self._cgroups.enforced else neighbours(self.of(view).pid)

    def all_processes(self) -> set[int]:
        try:
            return {process for view in VIEWS for process in self.processes(view)}
        except SandboxFault:  # the sandbox is being stopped
            return set()

    def has_commands(self, view: str) -> bool:
        """Whether processes run in a view beside those that belong to the sandbox itself."""
        return any(not stat_of(process).is_dead for process in self.processes(view) - self._own_processes())

    def kill_commands(self, view: str) -> None:
        """Kills all processes of a view except the sandbox's own. Repeats it, since one may have started another."""
        own = self._own_processes()
        for _ in range(_KILLING_ROUNDS):
            doomed = self.processes(view) - own
            if not doomed:
                return
            for process in doomed:
                send(process)
            time.sleep(0.005)

    def end(self, *, limited: bool) -> bool:
        """Kills every process and returns whether all are gone. When the first process of a process namespace ends,
        the kernel ends all others in it and in those nested inside."""
        containers = list(self._by_view.values())
        for container in containers:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(container.process, signal.SIGKILL)
        pids = {container.pid for container in containers}
        self._machine.reap(pids)
        if limited:
            # An empty cgroup means the same, and does not wait for the parent to reap its children.
            gone = self._cgroups.remove(_ENDING_SEC)
        else:
            until = time.monotonic() + _ENDING_SEC
            gone = all(has_ended(container.process, max(until - time.monotonic(), 0)) for container in containers)
            self._cgroups.remove()
        self._machine.reap(pids)
        return gone

    def close(self) -> None:
        containers, self._by_view = self._by_view, {}
        for container in containers.values():
            os.close(container.process)
            container.view.close()

    def _own_processes(self) -> set[int]:
        """The first processes of both containers, the first one of the agent's process namespace, and the one that
        keeps it waiting. Orphans become children of the same parents; their namespace and cgroup tell them apart."""
        if (first := self._by_view.get("grading")) is None:
            return set()
        nested = [child for child in children(first.pid) if not shares_namespace(child, first.pid)]
        below = {child for process in nested for child in children(process)}
        if self._cgroups.enforced:
            below &= self._cgroups.processes("grading")
        return {*(container.pid for container in self._by_view.values()), *nested, *below}
