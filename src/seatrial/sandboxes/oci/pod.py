"""A running sandbox: two containers over one root, with its limits, its network and its directory.

``oci.OciEnvironment`` is the only caller and knows Harbor; this knows containers. ``container_spec`` says why there are
two, ``pod_directory`` prepares what they start on. Everything of a pod is below one directory, so that another process
can find and remove what this one left.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.processes import has_same_number_for_both, kill_tree
from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.host.storage import DiskMeter, Meter, TreeMeter
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.oci import command
from seatrial.sandboxes.oci.container_spec import (
    DEFAULT_PATH,
    FOUNDATIONS,
    LEADS_SESSION,
    OWN_SESSION,
    TESTS,
    VERIFIER,
    Confinement,
    agent_spec,
    grading_spec,
    process_spec,
)
from seatrial.sandboxes.oci.containers import Container, Containers
from seatrial.sandboxes.oci.handshake import Handshake
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.plan import PodPlan
from seatrial.sandboxes.oci.pod_directory import PodDirectory
from seatrial.sandboxes.record import SandboxRecord, remove_recorded

_log = logging.getLogger(__name__)
_DIFFERENT_NUMBERS = "process numbers: the verifier sees the agent's processes under other numbers"
_STARTING_SEC = 20.0
_SHELLS = ("bash", "sh")


@dataclass(frozen=True, slots=True)
class Call:
    """A requested command."""

    arguments: Sequence[str]
    environment: dict[str, str]
    cwd: str
    user: str | int | None


@dataclass(slots=True)
class Findings:
    """What was really done; read for the trial's lock."""

    root: str = ""
    storage: str = ""
    """``image`` where the sandbox has a disk of its own, else ``watched``."""
    not_applied: list[str] = field(default_factory=list)
    memory_killed: bool = False
    limited: bool = False
    started: bool = False
    left_running: bool = False
    """Processes of the agent were still running when grading began."""


class Pod:
    """Blocking methods, each for a thread of ``PrivateMounts``."""

    def __init__(self, machine: Machine, plan: PodPlan) -> None:
        self.plan = plan
        self.cgroups = machine.cgroups.of(plan.sandbox)
        self.containers = Containers(machine, self.cgroups)
        self.findings = Findings(not_applied=list(plan.not_applied))
        self.shell = _SHELLS[0]
        """bash, or sh in an image that never had bash."""
        self._machine = machine
        self._pod_directory = PodDirectory(machine, plan)
        self._ending = threading.Lock()
        self._foundations: list[str] = []

    @property
    def directory(self) -> Path:
        return self._pod_directory.directory

    @property
    def root(self) -> RootMount:
        return self._pod_directory.root

    @property
    def confinement(self) -> Confinement:
        return self._machine.privileged if self.plan.privileged else self._machine.confinement

    def view(self, view: str) -> SandboxView:
        return self.containers.of(view).view

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
            layout = self._pod_directory.prepare(self.cgroups)
            first = self._run_first(grading_spec(layout, self.confinement, self._machine.filters))
            second = self._run("agent", agent_spec(layout, self.confinement, self._machine.filters, first.pid))
            if not has_same_number_for_both(second.pid):
                self.findings.not_applied.append(_DIFFERENT_NUMBERS)
            self._keep_filters()
        finally:
            self._pod_directory.hide()
        self._foundations = self.view("agent").call(Transfer.present, FOUNDATIONS)
        self.shell = self._find_shell()
        if self._machine.commands_lead_sessions is None:
            self._machine.commands_lead_sessions = self._leads_session()
        self.findings.started = True

    def spawn(self, view: str, call: Call) -> command.Command:
        """Starts a command. Raises ``UnknownUser``, ``SandboxFault`` if the sandbox is gone, or
        ``OwnProcessesKilled`` if the agent ended its part of it."""
        container = self.containers.of(view)
        self.containers.check(view)
        account = container.view.call(Transfer.account, call.user)
        environment = {"PATH": DEFAULT_PATH, "HOSTNAME": self.plan.hostname, "HOME": account.home, **call.environment}
        session = () if self._machine.commands_lead_sessions else OWN_SESSION
        arguments = [*session, *call.arguments]
        description = process_spec(self.confinement, arguments, environment, call.cwd, account.identity)
        return command.spawn(self._exec(view, container), json.dumps(description).encode())

    def meter(self) -> Meter:
        """Measures what the sandbox takes of the disk."""
        limit, disk = self.plan.limits.storage_mb << 20, self.root.disk
        if disk is not None:
            return DiskMeter(disk, limit)
        directory = self._pod_directory
        return TreeMeter(directory.written, self.containers.all_processes, limit, directory.copied_bytes)

    def make_room(self) -> None:
        """Frees space for the verifier if the agent filled the disk. The agent's processes are killed: they would fill
        it again."""
        if (disk := self.root.disk) is not None:
            if disk.is_full:
                self.containers.kill_commands("agent")
            disk.make_room()

    def begin_grading(self) -> None:
        """Empties the verifier's directory, whatever is in it."""
        self.findings.left_running = self.containers.has_commands("agent")
        self.view("grading").call(Transfer.empty, [VERIFIER])

    def end_grading(self) -> None:
        """Leaves nothing of this grading for the next one: no file, and no process that could write one."""
        if self.cgroups.enforced:
            self.containers.kill_commands("grading")
        self.view("grading").call(Transfer.empty, [TESTS, VERIFIER])

    def kill_command(self, view: str, running: command.Command) -> None:
        kill_tree(running.pid, lambda: self.containers.processes(view))

    def broken(self, view: str) -> str:
        """Why commands cannot work any more; empty if they can. Raises what ``Containers.check`` does."""
        self.containers.check(view)
        present = self.view("agent").call(Transfer.present, self._foundations)
        missing = [path for path in self._foundations if path not in present]
        return f"{', '.join(missing)} cannot be run any more." if missing else ""

    def stop(self) -> None:
        """Ends every process of the sandbox and removes all of its files. Safe to call again, from any thread."""
        with self._ending:
            self.findings.memory_killed |= self.cgroups.memory_kills > 0
            gone = self.containers.end(limited=self.findings.limited)
            self.root.hide()
            self.root.end()
            self.containers.close()
            if not gone:
                raise SandboxFault(f"Processes of sandbox {self.plan.sandbox} could not be ended.")
            if problem := remove_recorded(self.directory):
                _log.warning("The files of sandbox %s are left for the next sweep: %s", self.plan.sandbox, problem)

    @property
    def _state(self) -> Path:
        return self.directory / "runtime"

    def _make_cgroups(self) -> None:
        problem = self._machine.cgroups.problem
        if not problem:
            try:
                self.cgroups.make(self.plan.limits)
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
        problem = command.run_to_end([*self._prefix(view), *runtime], standard=standard)
        if problem:
            raise SandboxFault(f"The sandbox did not start: {problem}")
        container = self.containers.add(view, name, int((bundle / "pid").read_text()))
        container.view.forbid_devices("/")  # crun takes this flag off the root it was given
        return container

    def _exec(self, view: str, container: Container) -> list[str]:
        return [*self._prefix(view), *self._machine.runtime.exec(self._state, container.name)]

    def _prefix(self, view: str) -> list[str]:
        if not self._machine.runtime.is_crun or not self.findings.limited:
            return []
        return self.cgroups.command_prefix(view, str(self._machine.busybox))

    def _keep_filters(self) -> None:
        confinement = self.confinement
        pairs = {"grading": confinement.first_process, "agent": confinement.commands}
        for view, made_of in pairs.items():
            if made_of is not None:
                self._machine.filters.keep(made_of, self._state / f"{self.plan.sandbox}-{view}" / "seccomp.bpf")

    def _find_shell(self) -> str:
        places = DEFAULT_PATH.split(":")
        for shell in _SHELLS:
            if self.view("agent").call(Transfer.present, [f"{place}/{shell}" for place in places]):
                return shell
        return _SHELLS[0]

    def _leads_session(self) -> bool:
        question = process_spec(self.confinement, list(LEADS_SESSION), {"PATH": DEFAULT_PATH}, "/", (0, 0, ()))
        arguments = self._exec("agent", self.containers.of("agent"))
        return not command.run_to_end(arguments, json.dumps(question).encode())
