"""The limits of a sandbox, in cgroups that we manage ourselves: version 1, version 2 and both at once.

``pod`` has one ``SandboxCgroups``. The container runtime leaves cgroups alone: to move a process into the dozen
hierarchies of a version 1 host costs it 15 ms for each command, while a process that moves *itself*, one thread, into
the few that matter costs almost nothing. So each command starts with ``command_prefix`` and then becomes the runtime.

The agent's and the verifier's processes share memory and CPU but not the process limit: what a fork bomb left behind
must not keep the verifier from starting.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.host.processes import memory_kills, send
from seatrial.sandboxes.host.strain import Strain, strain_of

PARENT_GROUP = "seatrial"
VIEWS = ("agent", "grading")
_MOUNTINFO = Path("/proc/self/mountinfo")
_PERIOD_US = 100_000
_LEGACY_CONTROLLERS = ("memory", "pids", "cpu", "devices")
_UNIFIED_CONTROLLERS = ("memory", "pids", "cpu")
_DEVICES = (
    "c *:* m",
    "b *:* m",
    "c 1:3 rwm",  # null
    "c 1:5 rwm",  # zero
    "c 1:7 rwm",  # full
    "c 1:8 rwm",  # random
    "c 1:9 rwm",  # urandom
    "c 5:0 rwm",  # tty
    "c 5:2 rwm",  # ptmx
    "c 10:200 rwm",  # tun, which runc insists on; of no use without CAP_NET_ADMIN
    "c 136:* rwm",  # pts
)
_ENTER = (
    'while [ "$1" != -- ]; do { echo 0 > "$1"; } 2>&4 || exit 125; shift; done; shift; exec "$@"'
    # Descriptor 4 is the runtime's log: what goes wrong here is not the command's output.
)


class Limits(Frozen):
    """What one sandbox may use."""

    cpus: float
    memory_mb: int
    pids: int
    storage_mb: int


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where the cgroup hierarchies that matter are mounted."""

    legacy: dict[str, Path] = field(default_factory=dict)
    """Of version 1, by controller."""
    unified: Path | None = None
    every: frozenset[Path] = frozenset()


class Cgroups:
    """The cgroup hierarchies of this machine."""

    def __init__(self, hierarchies: Hierarchies, problem: str = "", fix: str = "") -> None:
        self._hierarchies = hierarchies
        self.problem = problem
        """Why limits cannot be enforced; empty where they can."""
        self.fix = fix
        """How to solve the problem, if it can be solved."""

    @classmethod
    def found(cls, mountinfo: Path = _MOUNTINFO) -> Cgroups:
        mounted = _mounted(mountinfo)
        if "memory" in mounted.legacy and "pids" in mounted.legacy:
            return cls(replace(mounted, unified=None), _refusal(list(mounted.legacy.values())))
        if mounted.unified is not None:
            problem, fix = _delegation(mounted.unified)
            return cls(replace(mounted, legacy={}), _refusal([mounted.unified]) or problem, fix)
        return cls(replace(mounted, legacy={}), "no cgroup hierarchy is mounted")

    @property
    def description(self) -> str:
        if self._hierarchies.unified is not None:
            return f"cgroup v2: {', '.join(_UNIFIED_CONTROLLERS)}"
        return f"cgroup v1: {', '.join(self._hierarchies.legacy)}"

    @property
    def filters_devices(self) -> bool:
        """Without it, device nodes are kept out by the mount and by one capability less."""
        return not self.problem and "devices" in self._hierarchies.legacy

    def of(self, sandbox: str) -> SandboxCgroups:
        return SandboxCgroups(Hierarchies() if self.problem else self._hierarchies, sandbox)


class SandboxCgroups:
    """The cgroups of one sandbox."""

    def __init__(self, hierarchies: Hierarchies, sandbox: str) -> None:
        own, unified = Path(PARENT_GROUP) / sandbox, hierarchies.unified
        self._every = [root / own for root in hierarchies.every]
        self._legacy = {name: root / own for name, root in hierarchies.legacy.items()}
        self._unified = unified / own if unified is not None else None

    @property
    def enforced(self) -> bool:
        return bool(self._legacy) or self._unified is not None

    @property
    def visible(self) -> dict[str, Path]:
        """The cgroups that the sandbox may see, by the path below ``/sys/fs/cgroup`` where programs look."""
        if self._unified is not None:
            return {"": self._unified}
        return {f"/{name}": path for name, path in self._legacy.items() if name != "devices"}

    def make(self, limits: Limits) -> None:
        quota = str(max(int(limits.cpus * _PERIOD_US), 1000))
        memory = str(limits.memory_mb * 1024 * 1024)
        if self._unified is not None:
            _make_unified(self._unified, limits, f"{quota} {_PERIOD_US}", memory)
        for name, path in self._legacy.items():
            path.mkdir(parents=True, exist_ok=True)
            if name == "memory":
                _write(path / "memory.limit_in_bytes", memory)
                _write(path / "memory.memsw.limit_in_bytes", memory, optional=True)
            elif name == "cpu":
                _write(path / "cpu.cfs_period_us", str(_PERIOD_US))
                _write(path / "cpu.cfs_quota_us", quota)
            elif name == "devices":
                _write(path / "devices.deny", "a")
                _write(path / "devices.allow", *_DEVICES)
            elif name == "pids":
                for view in VIEWS:
                    (path / view).mkdir(exist_ok=True)
                    _write(path / view / "pids.max", str(limits.pids))

    def command_prefix(self, view: str, shell: str) -> list[str]:
        """The beginning of a command line that has to run in here; empty without cgroups."""
        files = [str(path) for path in self.entry_files(view)]
        return [shell, "sh", "-c", _ENTER, "enter", *files, "--"] if files else []

    def processes(self, view: str | None = None) -> set[int]:
        """Process numbers of this machine."""
        found: set[int] = set()
        for place in self._populated():
            if view is None or place.name == view:
                found.update(int(line) for line in _read(place / "cgroup.procs").split())
        return found

    @property
    def memory_kills(self) -> int:
        """How many processes the memory limit has killed."""
        if self._unified is not None:
            return memory_kills(_read(self._unified / "memory.events"))
        places = [self._legacy["memory"] / part for part in ("", *VIEWS)] if "memory" in self._legacy else []
        return sum(memory_kills(_read(place / "memory.oom_control")) for place in places)

    @property
    def strain(self) -> Strain:
        """How often its limits held the sandbox up."""
        if self._unified is not None:
            return strain_of(self._unified, self._unified)
        return strain_of(self._legacy.get("cpu"), self._legacy.get("memory"))

    def remove(self, patience: float = 5.0) -> bool:
        """Kills what is still inside and removes the cgroups. Returns whether all are gone."""
        until = time.monotonic() + patience
        while not self._removed():
            if time.monotonic() > until:
                return False
            for process in self.processes():
                send(process)
            time.sleep(0.002)
        return True

    def _removed(self) -> bool:
        there = [path for path in self._every if path.is_dir()]
        for path in there:
            for directory, _, _ in os.walk(path, topdown=False):
                try:
                    Path(directory).rmdir()
                except OSError as error:
                    if error.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT):
                        raise
        return not any(path.exists() for path in there)

    def entry_files(self, view: str) -> Iterator[Path]:
        """Files that a process enters by writing ``0`` to them."""
        if self._unified is not None:
            yield self._unified / view / "cgroup.procs"
        for name, path in self._legacy.items():
            # ``tasks`` moves the one thread of a starting process and takes no machine-wide lock.
            yield (path / view if name == "pids" else path) / "tasks"

    def _populated(self) -> Iterator[Path]:
        """The one hierarchy in which views are apart."""
        root = self._unified or self._legacy.get("pids")
        if root is not None:
            yield from (root / view for view in VIEWS)


def _make_unified(path: Path, limits: Limits, quota: str, memory: str) -> None:
    wanted = " ".join(f"+{name}" for name in _UNIFIED_CONTROLLERS)
    path.mkdir(parents=True, exist_ok=True)
    for above in (path.parent.parent, path.parent, path):
        _write(above / "cgroup.subtree_control", wanted)
    _write(path / "memory.max", memory)
    _write(path / "memory.swap.max", "0", optional=True)
    _write(path / "cpu.max", quota)
    for view in VIEWS:
        (path / view).mkdir(exist_ok=True)
        _write(path / view / "pids.max", str(limits.pids))


def _mounted(mountinfo: Path) -> Hierarchies:
    legacy: dict[str, Path] = {}
    unified: Path | None = None
    every = set()
    for line in mountinfo.read_text().splitlines():
        fields = line.split()
        kind, options, place = fields[fields.index("-") + 1], fields[-1].split(","), Path(fields[4])
        if kind == "cgroup2":
            unified = unified or place
        elif kind == "cgroup":
            legacy |= {name: place for name in options if name in _LEGACY_CONTROLLERS}
        else:
            continue
        every.add(place)
    ordered = {name: legacy[name] for name in _LEGACY_CONTROLLERS if name in legacy}
    return Hierarchies(ordered, unified, frozenset(every))


def _refusal(roots: list[Path]) -> str:
    """Why a cgroup cannot be made here. Tries it."""
    for root in roots:
        try:
            (root / PARENT_GROUP).mkdir(exist_ok=True)
        except OSError as error:
            return f"{root} cannot be written: {os.strerror(error.errno or 0)}"
    return ""


def _delegation(root: Path) -> tuple[str, str]:
    """Why its children cannot be limited, and what would help; both empty where they can."""
    missing = set(_UNIFIED_CONTROLLERS) - set(_read(root / "cgroup.controllers").split())
    if missing:
        return f"{root} offers no {', '.join(sorted(missing))} controller", ""
    try:
        _write(root / "cgroup.subtree_control", " ".join(f"+{name}" for name in _UNIFIED_CONTROLLERS))
    except OSError as error:
        if error.errno == errno.EBUSY:
            # A container's root is an ordinary group to the kernel: it has processes or limited children, never both.
            place = f"{root}/others"
            fix = f"Run: mkdir -p {place} && xargs -I @ sh -c 'echo @ > {place}/cgroup.procs' < {root}/cgroup.procs"
            return f"processes of this machine are in {root} itself, so its children cannot be limited", fix
        return f"controllers of {root} cannot be handed on: {os.strerror(error.errno or 0)}", ""
    return "", ""


def _write(path: Path, *entries: str, optional: bool = False) -> None:
    """Writes each entry with its own call, as the kernel requires."""
    try:
        with path.open("wb", buffering=0) as file:
            for entry in entries:
                file.write(entry.encode())
    except OSError:
        if not optional:
            raise


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
