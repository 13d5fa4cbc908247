"""The two containers of a pod while they run: whether they live, which processes are theirs, and how all of them end.

``pod`` starts the containers and keeps them here.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.cgroups import VIEWS, SandboxCgroups
from seatrial.sandboxes.host.processes import children, has_ended, neighbours, send, shares_namespace
from seatrial.sandboxes.oci.machine import Machine

_ENDING_SEC = 20.0
_KILLING_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Container:
    """One running container."""

    name: str
    pid: int
    process: int
    """pidfd of its first process."""
    namespace: int
    """Its mount namespace, which remains even if an agent kills every process in it."""

    @property
    def has_ended(self) -> bool:
        return has_ended(self.process, 0)

    def close(self) -> None:
        os.close(self.process)
        os.close(self.namespace)


class PodContainers:
    """The containers of one pod by their view. Blocking."""

    def __init__(self, machine: Machine, cgroups: SandboxCgroups) -> None:
        self._machine = machine
        self._cgroups = cgroups
        self._running: dict[str, Container] = {}

    def __getitem__(self, view: str) -> Container:
        """``SandboxFault`` if it is not running."""
        try:
            return self._running[view]
        except KeyError:
            raise SandboxFault("The sandbox is not running.") from None

    def __setitem__(self, view: str, container: Container) -> None:
        self._running[view] = container

    def take(self) -> dict[str, Container]:
        """Forgets all containers and returns them. The caller closes them."""
        taken, self._running = self._running, {}
        return taken

    def alive(self, view: str) -> bool:
        """Whether commands can run in a view. The agent can end its own first process, but not the grading one."""
        needed = [entry for name, entry in self._running.items() if name in (view, "grading")]
        return bool(needed) and not any(entry.has_ended for entry in needed)

    def processes(self, view: str) -> set[int]:
        if self._cgroups.enforced:
            return self._cgroups.processes(view)
        return neighbours(self[view].pid)

    def all_processes(self) -> set[int]:
        try:
            return {process for view in VIEWS for process in self.processes(view)}
        except SandboxFault:  # the sandbox is being stopped
            return set()

    def commands(self) -> set[int]:
        """Processes of the agent's commands. The runtime may still be ending in the same cgroup on a busy machine; its
        own processes are in our process namespace."""
        found = self.processes("agent") - self._first_processes()
        return {process for process in found if not shares_namespace(process, os.getpid())}

    def kill_processes(self, view: str) -> None:
        """Kills all processes except the container's own. Repeats it, since one may have started another."""
        first = self._first_processes()
        for _ in range(_KILLING_ROUNDS):
            doomed = self.processes(view) - first
            if not doomed:
                return
            for process in doomed:
                send(process)
            time.sleep(0.005)

    def end(self, *, limited: bool) -> bool:
        """Ends every process and removes the cgroups; ``limited`` says whether those were made. Returns whether all
        processes are gone.

        When the first process of a process namespace ends, the kernel ends all others in it and in nested ones."""
        containers = list(self._running.values())
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

    def _first_processes(self) -> set[int]:
        """The first processes of both containers, the first one of the agent's process namespace, and the one that
        keeps it waiting. Orphans become children of the same parents; their namespace and cgroup tell them apart."""
        if (first := self._running.get("grading")) is None:
            return set()
        nested = [child for child in children(first.pid) if not shares_namespace(child, first.pid)]
        below = {child for process in nested for child in children(process)}
        if self._cgroups.enforced:
            below &= self._cgroups.processes("grading")
        return {*(container.pid for container in self._running.values()), *nested, *below}
