"""A running sandbox under gVisor: the same two containers over the same root, in one kernel of their own.

What the base class does with processes of this machine is done here by ``runsc`` or, where that has no call for it, by
a script in the grading container (``inside``). Files are reached from outside as with other runtimes, by descriptor,
through the mounts that gVisor's own file server has of each container.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, override

from seatrial.errors import SandboxFault, Unsupported
from seatrial.sandboxes.host.cgroups import Limits
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.host.in_root import SandboxRoot, closing
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.processes import has_ended, is_dead
from seatrial.sandboxes.oci import command
from seatrial.sandboxes.oci.container_spec import (
    TESTS,
    VERIFIER,
    Confinement,
    Layout,
    agent_spec,
    grading_spec,
    process_spec,
)
from seatrial.sandboxes.oci.gvisor import inside
from seatrial.sandboxes.oci.gvisor.programs import tools
from seatrial.sandboxes.oci.gvisor.runsc import Runsc, number_inside, told
from seatrial.sandboxes.oci.gvisor.spec import BUSYBOX, ENTER, READY, contained
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import DIFFERENT_NUMBERS, Pod
from seatrial.sandboxes.oci.pod_containers import Container, PodContainers
from seatrial.sandboxes.oci.pod_directory import PodDirectory
from seatrial.sandboxes.oci.pod_plan import PodPlan
from seatrial.system.removal import remove_tree

_log = logging.getLogger(__name__)
NOT_APPLIED = (
    DIFFERENT_NUMBERS,
    "limits inside: programs see the machine's memory and processors, not the sandbox's",
    "exact process limit: gVisor counts roughly, and was seen to let a quarter more start",
    "raw sockets: ping and the like have none",
    "gVisor's own network: connections are made by the machine's kernel, in the sandbox's network namespace",
)
_STARTING_SEC = 60.0
_PATIENCE_SEC = 10.0
_LOOK_SEC = 0.05
_KEPT_IN_TMP = ".seatrial-start"
_OWN_THREADS = 512
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class GoferRoots:
    """Roots of containers as gVisor's file servers, the gofers, have them mounted: below their own root."""

    def __init__(self, mounts: PrivateMounts) -> None:
        self._mounts = mounts

    def root_of(self, process: int, /) -> int:
        with self._mounts.inside(process):
            return os.open("/root", _DIRECTORY)


@dataclass(frozen=True, slots=True)
class GvisorContainer(Container):
    """One of the two. ``pid`` and ``process`` are of gVisor's kernel, ``namespace`` is of its file server."""

    life: int
    """A pipe that ends with the container's first process."""

    @property
    @override
    def has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self.life, 0)
        return bool(poll.poll(0))

    @override
    def close(self) -> None:
        Container.close(self)
        os.close(self.life)


class GvisorContainers(PodContainers):
    """The two containers of a pod. On this machine, their processes are gVisor's own."""

    @override
    def processes(self, view: str) -> set[int]:
        """Those of this machine that hold the sandbox: they have its files open."""
        pid = self[view].pid
        return self._cgroups.processes() if self._cgroups.enforced else {pid, *_children(pid)}


class _KeptDirectory(PodDirectory):
    """A directory whose mounts stay visible to this process, for a sandbox that has to be started again."""

    @override
    def hide(self) -> None:
        pass

    def hide_now(self) -> None:
        super().hide()


class GvisorPod(Pod):
    """Blocking methods, each for a thread of ``PrivateMounts``."""

    _pod_directory: _KeptDirectory

    def __init__(self, machine: Machine, plan: PodPlan) -> None:
        super().__init__(machine, plan)
        if plan.privileged:
            raise Unsupported("A privileged sandbox is not offered with gVisor (SEATRIAL_OCI_RUNTIME=runsc).")
        self._roots = GoferRoots(machine.mounts)
        self._shell_path = ""
        self._pod_directory = _KeptDirectory(machine, plan)
        self._containers = GvisorContainers(machine, self.cgroups)
        self._layout: Layout | None = None
        self._restarting = threading.Lock()
        self._kills_settled = 0
        self._runsc = Runsc(machine.runtime.path, self._state)
        self.findings.not_applied += NOT_APPLIED

    @property
    @override
    def confinement(self) -> Confinement:
        """Without raw sockets: gVisor itself would need the capability for them."""
        usual = super().confinement
        return replace(usual, capabilities=tuple(name for name in usual.capabilities if name != "CAP_NET_RAW"))

    @property
    @override
    def is_reached_by_sockets(self) -> bool:
        """gVisor's sockets are its own."""
        return False

    @override
    def spawn(self, view: str, call: command.Call) -> command.Command:
        container = self._containers[view]
        self.check(view)
        account = self.transfer(view).account(call.user)
        environment = self.environment(call, account)
        arguments = [ENTER, *self._program(call.arguments)]
        description = process_spec(self.confinement, arguments, environment, call.cwd, account.identity)
        return command.spawn(self._runsc.exec(container.name), json.dumps(description).encode())

    @override
    def check(self, view: str) -> None:
        """An agent can fill gVisor's own memory, and with it end the whole sandbox. That must not count as a fault of
        the sandbox, after which the trial would be tried again. So the sandbox is started again, over the same
        files."""
        with self._restarting:
            kills = self.cgroups.memory_kills
            if self._layout is not None and kills and (kills > self._kills_settled or not self.alive("grading")):
                self._settle(self._layout)
        super().check(view)

    @override
    def lend(self, directory: Path, place: str) -> bool:
        """gVisor has mounts of its own, and takes no more of them once it runs."""
        return False

    @override
    def save_state(self, target: Path) -> str:
        return "a part of it is in gVisor's memory"

    @override
    def begin_grading(self) -> None:
        self.findings.left_running = self._any_left()
        self.transfer("grading").empty([VERIFIER])

    @override
    def end_grading(self) -> None:
        self.kill_processes("grading")
        self.transfer("grading").empty([TESTS, VERIFIER])

    @override
    def kill_command(self, view: str, running: command.Command) -> None:
        until = time.monotonic() + _PATIENCE_SEC
        while (leader := number_inside(running.pid)) is None and time.monotonic() < until:
            if is_dead(running.pid):
                return
            time.sleep(0.002)
        if leader is None or self._script_fails(inside.kill_family(leader)):
            with suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGKILL)

    @override
    def kill_processes(self, view: str) -> None:
        self._script_fails(inside.kill_all(self._containers[view].name))

    @override
    def stop(self) -> None:
        with self._restarting:
            self._layout = None
        self._pod_directory.hide_now()
        super().stop()

    def _settle(self, layout: Layout) -> None:
        """After a memory kill gVisor takes a moment to give back what the program held, or to end. A command that
        begins meanwhile would be killed for what the last one took."""
        until = time.monotonic() + _PATIENCE_SEC
        while self.alive("grading") and time.monotonic() < until:
            kills = self.cgroups.memory_kills
            if not self._script_fails(inside.NOTHING) and self.cgroups.memory_kills == kills:
                break
            time.sleep(_LOOK_SEC)
        if not self.alive("grading"):
            self._start_again(layout)
        self._kills_settled = self.cgroups.memory_kills

    def _start_again(self, layout: Layout) -> None:
        _log.warning("Sandbox %s used up its memory; it is started again over the same files.", self.plan.sandbox)
        views, self._views = self._views, {}
        for entered in views.values():
            entered.close()
        for view, container in self._containers.take().items():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(container.process, signal.SIGKILL)
            if not has_ended(container.process, _PATIENCE_SEC):
                raise SandboxFault(f"Processes of sandbox {self.plan.sandbox} could not be ended.")
            container.close()
            remove_tree(self.directory / view)
        remove_tree(self._state)
        self._start_containers(layout)

    @override
    def _start_containers(self, layout: Layout) -> None:
        self._layout = layout
        layout = replace(layout, limits={}, counts_processes=False, cgroups_above="")
        confinement, filters = self.confinement, self._machine.filters
        with self._nothing_over_tmp():
            self._run("grading", grading_spec(layout, confinement, filters))
            self._run("agent", agent_spec(layout, confinement, filters, self._containers["grading"].pid))
        _prefer_commands_for_killing(self._containers["grading"].pid)

    @override
    def _run(self, view: str, spec: dict[str, Any], standard: Sequence[int] = ()) -> Container:
        bundle = self.directory / view
        bundle.mkdir()
        name, sandbox = f"{self.plan.sandbox}-{view}", f"{self.plan.sandbox}-grading"
        kept = tools(self._machine.run_dir.parent, self._machine.busybox)
        first, pids = view == "grading", self.plan.limits.pids
        config = contained(spec, sandbox=sandbox, first=first, tools=kept, pids=pids)
        (bundle / "config.json").write_text(json.dumps(config))
        with _Beginning() as beginning:
            started = [*self._entrance("grading"), *self._runsc.run(bundle, name)]
            if problem := command.run_to_end(started, standard=beginning.given):
                raise SandboxFault(f"The sandbox did not start: {told(problem)}")
            self._containers[view] = container = self._opened(name, sandbox, bundle, beginning)
            if not beginning.was_ready(_STARTING_SEC):
                raise SandboxFault("The sandbox's first process did not come up.")
        return container

    def _opened(self, name: str, sandbox: str, bundle: Path, beginning: _Beginning) -> GvisorContainer:
        pid, gofer = int((bundle / "pid").read_text()), self._runsc.gofer(name, sandbox)
        return GvisorContainer(
            name,
            pid,
            process=os.pidfd_open(pid),
            namespace=os.open(f"/proc/{gofer}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC),
            life=os.dup(beginning.mine),
        )

    def _any_left(self) -> bool:
        """Whether processes of the agent still run. Also true if the sandbox is there and cannot tell."""
        self.check("grading")
        return self._script_fails(inside.none_left(self._containers["agent"].name))

    def _script_fails(self, script: list[str]) -> bool:
        description = process_spec(self.confinement, script, {"PATH": DEFAULT_PATH}, "/", (0, 0, ()))
        grading = self._containers["grading"].name
        return bool(command.run_to_end(self._runsc.exec(grading), json.dumps(description).encode()))

    def _program(self, arguments: Sequence[str]) -> list[str]:
        """The file to be run, and its arguments beginning with its own name."""
        name = arguments[0]
        if name == self.shell and self._shell_path:
            return [self._shell_path, *arguments]
        return [name, *arguments] if "/" in name else [BUSYBOX, "env", *arguments]

    @override
    def _find_shell(self) -> str:
        shell = super()._find_shell()
        found = self.transfer("agent").present([f"{place}/{shell}" for place in DEFAULT_PATH.split(":")])
        self._shell_path = found[0] if found else ""
        return shell

    @override
    def _leads_session(self) -> bool:
        return True

    @override
    def _entrance(self, view: str) -> list[str]:
        return self.cgroups.command_prefix(view, str(self._machine.busybox)) if self.findings.limited else []

    @property
    @override
    def _cgroup_limits(self) -> Limits:
        """gVisor holds each container to the limit for processes. The machine's limit is for what gVisor itself needs:
        a process for each one inside, and its own threads."""
        limits = self.plan.limits
        return limits.model_copy(update={"pids": 3 * limits.pids + _OWN_THREADS})

    @contextmanager
    def _nothing_over_tmp(self) -> Iterator[None]:
        """Puts a file into ``/tmp``: over an empty one gVisor mounts a file system in memory, another for each
        container."""
        with ExitStack() as stack:
            with suppress(OSError):  # an image may have something else there, and then nothing is put over it
                top = stack.enter_context(closing(os.open(self.root.merged, _DIRECTORY)))
                place = stack.enter_context(SandboxRoot(top).made_directory("/tmp"))  # noqa: S108
                os.close(os.open(_KEPT_IN_TMP, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, dir_fd=place))
                stack.callback(_remove_kept, place)
            yield


class _Beginning:
    """The pipe on which a container's first process says that it is ready, and which ends with it."""

    def __init__(self) -> None:
        self.mine, self._its = os.pipe2(os.O_CLOEXEC)
        self._nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.given = (self._nothing, self._its, self._nothing)

    def was_ready(self, patience: float) -> bool:
        """Waits until it says so, or has ended. Blocking."""
        os.close(self._its)
        self._its = -1
        until = time.monotonic() + patience
        heard = b""
        poll = select.poll()
        poll.register(self.mine, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and poll.poll(left * 1000):
            said = os.read(self.mine, 4096)
            heard += said
            if not said or heard == f"{READY}\n".encode():
                return bool(said)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self.mine, self._its, self._nothing):
            if file >= 0:
                os.close(file)


def _prefer_commands_for_killing(pid: int) -> None:
    """When memory runs out, the kernel shall kill what stands for one process of the sandbox, not gVisor itself and
    with it all of them. Processes that start later inherit this."""
    for child in _children(pid):
        with suppress(OSError):
            Path(f"/proc/{child}/oom_score_adj").write_text("1000")


def _remove_kept(place: int) -> None:
    with suppress(OSError):
        os.unlink(_KEPT_IN_TMP, dir_fd=place)


def _children(pid: int) -> set[int]:
    """Of all threads of a process."""
    found: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, thread.read_text().split()))
    return found
