"""A running sandbox: two containers over one root, with its limits, its network and its directory.

``oci.OciEnvironment`` is the only caller and knows Harbor; this knows containers. ``container_spec`` says why there are
two, ``pod_directory`` prepares what they start on, ``pod_containers`` has them while they run. Everything of a pod is
below one directory, so that another process can find and remove what this one left.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.accounts import Account
from seatrial.sandboxes.host.cgroups import Limits
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH, FOUNDATIONS
from seatrial.sandboxes.host.idle_terminal import lasting, look
from seatrial.sandboxes.host.in_root import closing
from seatrial.sandboxes.host.lent_tree import LentTree, empty_place
from seatrial.sandboxes.host.processes import has_same_number_for_both, is_dead, kill_tree, send
from seatrial.sandboxes.host.root_mount import RootMount, nodev
from seatrial.sandboxes.host.storage import DiskMeter, Meter, TreeMeter
from seatrial.sandboxes.host.strain import Strain
from seatrial.sandboxes.host.transfer import Roots, Transfer
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.images.storage import remove_nodes
from seatrial.sandboxes.oci import command
from seatrial.sandboxes.oci.container_spec import (
    LEADS_SESSION,
    OWN_SESSION,
    TESTS,
    VERIFIER,
    Confinement,
    Layout,
    agent_spec,
    grading_spec,
    process_spec,
)
from seatrial.sandboxes.oci.handshake import Handshake
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod_containers import Container, PodContainers
from seatrial.sandboxes.oci.pod_directory import PodDirectory
from seatrial.sandboxes.oci.pod_plan import PodPlan
from seatrial.sandboxes.own_processes import OwnProcessesKilled
from seatrial.sandboxes.record import SandboxRecord, remove_recorded

_log = logging.getLogger(__name__)
DIFFERENT_NUMBERS = "process numbers: the verifier sees the agent's processes under other numbers"
_STARTING_SEC = 20.0
_SHELLS = ("bash", "sh")


@dataclass(slots=True)
class Findings:
    """What was really done; read for the trial's lock."""

    root: str = ""
    storage: str = ""
    """``image`` where the sandbox has a disk of its own, else ``watched``."""
    not_applied: list[str] = field(default_factory=list)
    memory_killed: bool = False
    strain: Strain | None = None
    """Noted when the sandbox ends; ``None`` before."""
    limited: bool = False
    started: bool = False
    left_running: bool = False
    """Processes of the agent were still running when grading began."""


class Pod:
    """Blocking methods, each for a thread of ``PrivateMounts``."""

    def __init__(self, machine: Machine, plan: PodPlan) -> None:
        self.plan = plan
        self.cgroups = machine.cgroups.of(plan.sandbox)
        self.findings = Findings(not_applied=list(plan.not_applied))
        self._machine = machine
        self._pod_directory = PodDirectory(machine, plan)
        self._containers = PodContainers(machine, self.cgroups)
        self._ending = threading.Lock()
        self._views: dict[str, SandboxView] = {}
        self.shell = _SHELLS[0]
        """bash, or sh in an image that never had bash."""
        self._foundations: list[str] = []
        self._roots: Roots = machine.mounts
        """Opens the root that a container sees."""

    @property
    def directory(self) -> Path:
        return self._pod_directory.directory

    @property
    def root(self) -> RootMount:
        return self._pod_directory.root

    @property
    def confinement(self) -> Confinement:
        return self._machine.privileged if self.plan.privileged else self._machine.confinement

    @property
    def is_reached_by_sockets(self) -> bool:
        """Whether this process may connect to what listens inside. A privileged sandbox could reach back to it."""
        return not self.plan.privileged

    def start(self) -> None:
        self.directory.mkdir(parents=True, mode=0o700)
        SandboxRecord.new(self.plan.sandbox, self.plan.owner).write(self.directory)
        self._make_cgroups()
        kind = self._pod_directory.make_root()
        self.findings.root = kind
        if kind != "overlay":
            self.findings.not_applied.append(f"overlay root: {kind} was used instead")
        self.findings.storage = "watched" if self.root.disk is None else "image"
        if self.root.disk is None:
            self.findings.not_applied.append(f"disk image: {self._pod_directory.without_disk}")
        try:
            self._start_containers(self._pod_directory.prepare(self.cgroups))
        finally:
            self._pod_directory.hide()
        self._foundations = self.transfer("agent").present(list(FOUNDATIONS))
        self.shell = self._find_shell()
        if self._machine.commands_lead_sessions is None:
            self._machine.commands_lead_sessions = self._leads_session()
        self.findings.started = True

    def _start_containers(self, layout: Layout) -> None:
        first = self._run_first(grading_spec(layout, self.confinement, self._machine.filters))
        second = self._run("agent", agent_spec(layout, self.confinement, self._machine.filters, first.pid))
        if not has_same_number_for_both(second.pid):
            self.findings.not_applied.append(DIFFERENT_NUMBERS)
        self._keep_filters()

    def transfer(self, view: str) -> Transfer:
        """Reaches the files of a view. Blocking."""
        return Transfer(self._roots, self._containers[view].namespace)

    def view(self, view: str) -> SandboxView:
        """The same for the event loop. It is closed when the pod stops."""
        if view not in self._views:
            entrance = os.dup(self._containers[view].namespace)
            self._views[view] = SandboxView(self._machine.mounts, entrance, self._roots)
        return self._views[view]

    def spawn(self, view: str, call: command.Call) -> command.Command:
        """Starts a command. Raises ``UnknownUser``, ``SandboxFault`` if the sandbox is gone, or
        ``OwnProcessesKilled`` if the agent ended its part of it."""
        container = self._containers[view]
        self.check(view)
        account = self.transfer(view).account(call.user)
        environment = self.environment(call, account)
        session = () if self._machine.commands_lead_sessions else OWN_SESSION
        arguments = [*session, *call.arguments]
        description = process_spec(self.confinement, arguments, environment, call.cwd, account.identity)
        return command.spawn(self._exec(view, container), json.dumps(description).encode())

    def environment(self, call: command.Call, account: Account) -> dict[str, str]:
        """All variables of a command."""
        return {"PATH": DEFAULT_PATH, "HOSTNAME": self.plan.hostname, "HOME": account.home, **call.environment}

    def meter(self) -> Meter:
        """Measures what the sandbox takes of the disk."""
        limit, disk = self.plan.limits.storage_mb << 20, self.root.disk
        if disk is not None:
            return DiskMeter(disk, limit)
        return TreeMeter(
            self._pod_directory.written, self._containers.all_processes, limit, self._pod_directory.copied_bytes
        )

    def make_room(self) -> None:
        """Frees space for the verifier if the agent filled the disk. The agent's processes are killed: they would fill
        it again."""
        if (disk := self.root.disk) is not None:
            if disk.is_full:
                self.kill_processes("agent")
            disk.make_room()

    def lend(self, directory: Path, place: str) -> bool:
        """Mounts a directory of this machine read-only in both views. Returns whether that could be done.

        Not in a privileged sandbox, which could make the mount writable. The verifier's view comes first: what works in
        one of them only must not be the agent's."""
        if self.plan.privileged:
            return False
        try:
            for view in ("grading", "agent"):
                self._lend_to(self._containers[view].namespace, directory, place)
        except OSError:
            return False
        return True

    def save_state(self, target: Path) -> str:
        """Copies what the agent left to this file, or returns why that would not be all of it."""
        disk = self.root.disk
        if disk is None or self.findings.root == "copy":
            return "the sandbox has no disk of its own"
        if self.plan.memory_dirs or self._has_files_in_memory():
            return "it has files in memory"
        running = look(self._containers.commands())
        if needed := lasting(running):
            names = sorted({running[process].name for process in needed})
            return f"processes of the agent still run: {', '.join(names[:5])}"
        for process in running:  # a shell may write its history
            send(process, signal.SIGSTOP)
        try:
            disk.copy_to(target)
        finally:
            for process in running:
                send(process, signal.SIGCONT)
        return ""

    def save_layer(self, target: Path) -> None:
        """Copies what was written since the start to a directory that can be a layer of other sandboxes. Ends all
        commands first. Device nodes are left out."""
        if self.findings.root == "copy":
            raise SandboxFault("The sandbox has no layer of its own.")
        self.kill_processes("agent")
        # cp keeps owners, links, marks of deleted files and the overlay's attributes, and follows no link.
        source = str(self.root.upper).replace("/proc/self/", f"/proc/{os.getpid()}/")
        copy = ["cp", "--archive", "--no-target-directory", "--", source, str(target)]
        copied = subprocess.run(copy, capture_output=True, text=True, check=False)
        if copied.returncode:
            raise SandboxFault(f"The layer could not be copied: {copied.stderr.strip()[:300]}")
        remove_nodes([target])

    def _has_files_in_memory(self) -> bool:
        with self._machine.mounts.inside(self._containers["agent"].namespace), suppress(OSError):
            return any(Path("/dev/shm").iterdir())  # noqa: S108 - the sandbox's own
        return False

    def begin_grading(self) -> None:
        """Empties the verifier's directory, whatever is in it."""
        self.findings.left_running = any(not is_dead(process) for process in self._containers.commands())
        self.transfer("grading").empty([VERIFIER])

    def end_grading(self) -> None:
        """Leaves nothing of this grading for the next one: no file, and no process that could write one."""
        if self.cgroups.enforced:
            self.kill_processes("grading")
        self.transfer("grading").empty([TESTS, VERIFIER])

    def kill_command(self, view: str, running: command.Command) -> None:
        kill_tree(running.pid, lambda: self._containers.processes(view))

    def kill_processes(self, view: str) -> None:
        """Kills all processes except the container's own."""
        self._containers.kill_processes(view)

    def alive(self, view: str) -> bool:
        """Whether commands can run in a view."""
        return self._containers.alive(view)

    def check(self, view: str) -> None:
        """Raises ``OwnProcessesKilled`` or ``SandboxFault`` if no command can run."""
        if self.alive(view):
            return
        if self.alive("grading"):
            raise OwnProcessesKilled
        raise SandboxFault("The sandbox is broken: its processes are gone.")

    def broken(self, view: str) -> str:
        """Why commands cannot work any more; empty if they can. Raises what ``check`` does."""
        self.check(view)
        present = self.transfer("agent").present(self._foundations)
        missing = [path for path in self._foundations if path not in present]
        return f"{', '.join(missing)} cannot be run any more." if missing else ""

    def stop(self) -> None:
        """Ends every process of the sandbox and removes all of its files. Safe to call again, from any thread."""
        with self._ending:
            self.findings.memory_killed |= self.cgroups.memory_kills > 0
            self.findings.strain = self.findings.strain or self.cgroups.strain
            gone = self._containers.end(limited=self.findings.limited)
            self.root.hide()
            self.root.end()
            containers = self._containers.take()
            for view in self._views.values():
                view.close()
            for container in containers.values():
                container.close()
            if not gone:
                raise SandboxFault(f"Processes of sandbox {self.plan.sandbox} could not be ended.")
            if problem := remove_recorded(self.directory):
                _log.warning("The files of sandbox %s are left for the next sweep: %s", self.plan.sandbox, problem)

    @property
    def _state(self) -> Path:
        return self.directory / "runtime"

    def _entrance(self, view: str) -> list[str]:
        if not self._machine.runtime.is_crun or not self.findings.limited:
            return []
        return self.cgroups.command_prefix(view, str(self._machine.busybox))

    def _exec(self, view: str, container: Container) -> list[str]:
        return [*self._entrance(view), *self._machine.runtime.exec(self._state, container.name)]

    @property
    def _cgroup_limits(self) -> Limits:
        return self.plan.limits

    def _make_cgroups(self) -> None:
        problem = self._machine.cgroups.problem
        if not problem:
            try:
                self.cgroups.make(self._cgroup_limits)
                self.findings.limited = True
            except OSError as error:
                problem = str(error)
        if problem:
            self.findings.not_applied.append(f"limits not enforced: {problem}")

    def _run_first(self, spec: dict[str, object]) -> Container:
        """Returns once the agent's process namespace exists and its process numbers are aligned."""
        with Handshake() as handshake:
            first = self._run("grading", spec, handshake.given)
            handshake.let_go()
            if not handshake.was_ready(_STARTING_SEC):
                raise SandboxFault("The sandbox's first process did not come up.")
        return first

    def _run(self, view: str, spec: dict[str, object], standard: Sequence[int] = ()) -> Container:
        bundle = self.directory / view
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(spec))
        name = f"{self.plan.sandbox}-{view}"
        runtime = self._machine.runtime.run(self._state, bundle, name)
        if problem := command.run_to_end([*self._entrance(view), *runtime], standard=standard):
            raise SandboxFault(f"The sandbox did not start: {problem}")
        pid = int((bundle / "pid").read_text())
        process = os.pidfd_open(pid)
        namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        container = Container(name, pid, process, namespace)
        self._containers[view] = container
        with self._machine.mounts.inside(container.namespace):
            nodev(Path("/"))  # crun takes this flag off the root it was given
        return container

    def _keep_filters(self) -> None:
        confinement = self.confinement
        pairs = {"grading": confinement.first_process, "agent": confinement.commands}
        for view, made_of in pairs.items():
            if made_of is not None:
                self._machine.filters.save(made_of, self._state / f"{self.plan.sandbox}-{view}" / "seccomp.bpf")

    def _lend_to(self, namespace: int, directory: Path, place: str) -> None:
        mounts = self._machine.mounts
        with (
            LentTree(directory) as tree,
            closing(mounts.root_of(namespace)) as root,
            empty_place(root, place) as target,
            mounts.inside(namespace),
        ):
            tree.move_to(target)

    def _find_shell(self) -> str:
        places = DEFAULT_PATH.split(":")
        for shell in _SHELLS:
            if self.transfer("agent").present([f"{place}/{shell}" for place in places]):
                return shell
        return _SHELLS[0]

    def _leads_session(self) -> bool:
        question = process_spec(self.confinement, list(LEADS_SESSION), {"PATH": DEFAULT_PATH}, "/", (0, 0, ()))
        arguments = self._exec("agent", self._containers["agent"])
        return not command.run_to_end(arguments, json.dumps(question).encode())
