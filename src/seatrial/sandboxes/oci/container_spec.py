"""The OCI runtime configuration of a sandbox's containers: what their processes may do and what they see.

Pure: ``pod`` writes the result for crun or runc. A sandbox is two containers over one root file system. The *grading*
container is started first and holds the sandbox's process, network and IPC namespaces; its first process makes a
process namespace inside its own, and in that one the *agent* container lives. So the verifier sees the agent's
processes under the numbers the agent knows, while the agent can neither see, trace nor signal the verifier's, whatever
its user.

A mount of another namespace ends when somebody removes or renames the directory under it. The agent could do that to
the verifier's ``/tests`` and ``/logs/verifier``, so in the agent's container both, and ``/logs``, are mounted upon
themselves: a directory that is a mount point where one looks from can be neither removed nor renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.host.seccomp import CompiledFilters, Filter
from seatrial.sandboxes.oci.handshake import READY

TESTS, VERIFIER = "/tests", "/logs/verifier"
GUARDED = ("/logs", VERIFIER, TESTS)
"""Directories that the agent can neither remove nor rename."""
MARK = "SEATRIAL_SANDBOX"
"""Environment variable of a sandbox's first processes, by which leftovers are recognised."""

_TOOLS = "/dev/.seatrial"
_INIT = f"{_TOOLS}/busybox"
OWN_SESSION = (_INIT, "setsid")
"""Prefix of a command line that has to lead its own session."""
LEADS_SESSION = (_INIT, "awk", "{exit $1 != $6}", "/proc/self/stat")
"""Succeeds if commands lead a session anyway."""
_LAST_PID = f"{_TOOLS}/last_pid"
_FIRST_PID = 20
_COUNT = f"echo {_FIRST_PID} > {_LAST_PID};"
# A shell that waits reaps orphans. Its first child is the first process of the agent's process namespace. From there on
# both namespaces count alike, so that a process number the agent wrote into a file is right for the verifier too. The
# child prints a line once it has started all of its processes. The shell reads it, and reports to ``pod``.
_NEST = (
    "({init} sleep 2147483647 > /dev/null & {count} echo; exec > /dev/null; wait) 2> /dev/null &"
    f" exec > /dev/null; read -r _ || exit 1; {{count}} echo {READY} >&2; exec < /dev/null 2> /dev/null; wait"
)
_MASKED = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
]
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the processes of a sandbox may do."""

    capabilities: tuple[str, ...]
    commands: Filter | None
    """For the agent's container; ``None`` in a privileged sandbox."""
    first_process: Filter | None
    """For the grading container: the same and the making of a process namespace."""
    open_files: int
    privileged: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of one sandbox are on this machine."""

    sandbox: str
    hostname: str
    root: Path
    busybox: Path
    hosts: Path
    resolv_conf: Path
    shared_memory: Path
    network: Path | None
    """A network namespace to join; ``None`` makes one without any interface."""
    host_network: bool = False
    counts_processes: bool = True
    """Whether this kernel lets process numbers be aligned."""
    limits: dict[str, Path] = field(default_factory=dict)
    """The sandbox's own cgroups by the names they have below ``/sys/fs/cgroup``, for programs that size themselves."""
    memory_mounts: dict[str, tuple[Path, tuple[str, ...]]] = field(default_factory=dict)
    """Directories that the task wants in memory: where each is mounted, and with which flags."""
    grading_mounts: dict[str, Path] = field(default_factory=dict)
    cgroups_above: str = ""
    """Cgroup for a runtime that insists on one."""


def grading_spec(layout: Layout, confinement: Confinement, filters: CompiledFilters) -> dict[str, Any]:
    """The container that is started first; the verifier's commands run in it."""
    capabilities = [*confinement.capabilities]
    first = [*capabilities, *(name for name in ("CAP_SYS_ADMIN",) if name not in capabilities)]
    command = _NEST.format(init=_INIT, tools=_TOOLS, count=_COUNT if layout.counts_processes else "")
    spec = _spec(layout, confinement, confinement.first_process, filters)
    spec["process"] = _first_process(layout, confinement, first)
    spec["process"]["args"] = [_INIT, "unshare", "-p", _INIT, "sh", "-c", command]
    if layout.counts_processes:
        spec["mounts"].append(_bind(Path("/proc/sys/kernel/ns_last_pid"), _LAST_PID))
    spec["mounts"] += [_bind(source, target, "nodev") for target, source in layout.grading_mounts.items()]
    spec["linux"] |= _cgroups(layout, "grading")
    spec["linux"]["namespaces"] = [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "cgroup")]
    spec["linux"]["namespaces"] += _network(layout)
    return spec


def agent_spec(
    layout: Layout, confinement: Confinement, filters: CompiledFilters, grading_process: int
) -> dict[str, Any]:
    """The agent's container, joined to what the grading container's first process holds."""
    spec = _spec(layout, confinement, confinement.commands, filters)
    spec["process"] = _first_process(layout, confinement, list(confinement.capabilities))
    spec["process"]["args"] = [_INIT, "sleep", "2147483647"]
    spec["mounts"] += [_bind(layout.root / path.lstrip("/"), path, "nodev") for path in GUARDED]
    spec["linux"] |= _cgroups(layout, "agent")
    namespaces = Path("/proc") / str(grading_process) / "ns"
    joined = {"pid": "pid_for_children", "ipc": "ipc", "uts": "uts", "network": "net"}
    if layout.host_network:
        joined.pop("network")
    spec["linux"]["namespaces"] = [
        {"type": "mount"},
        {"type": "cgroup"},
        *({"type": kind, "path": str(namespaces / name)} for kind, name in joined.items()),
    ]
    return spec


def process_spec(
    confinement: Confinement,
    arguments: list[str],
    environment: dict[str, str],
    cwd: str,
    user: tuple[int, int, tuple[int, ...]],
) -> dict[str, Any]:
    """One command in a running container. The runtime copies nothing from the container, so this is complete."""
    uid, gid, groups = user
    return {
        "terminal": False,
        "user": {"uid": uid, "gid": gid, "additionalGids": list(groups)},
        "args": arguments,
        "env": [f"{name}={value}" for name, value in environment.items()],
        "cwd": cwd,
        "capabilities": _capabilities(list(confinement.capabilities), root=uid == 0),
        "rlimits": _rlimits(confinement),
        "noNewPrivileges": not confinement.privileged,
    }


def _spec(layout: Layout, confinement: Confinement, chosen: Filter | None, filters: CompiledFilters) -> dict[str, Any]:
    linux: dict[str, Any] = {"rootfsPropagation": "private"}
    if not confinement.privileged:
        linux |= {"maskedPaths": list(_MASKED), "readonlyPaths": list(_READ_ONLY)}
    if chosen is not None:
        linux["seccomp"] = chosen.section
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(layout.root), "readonly": False},
        "hostname": layout.hostname,
        "mounts": _mounts(layout, confinement),
        "annotations": filters.annotations(chosen) if chosen is not None else {},
        "linux": linux,
    }


def _first_process(layout: Layout, confinement: Confinement, capabilities: list[str]) -> dict[str, Any]:
    return {
        "terminal": False,
        "user": {"uid": 0, "gid": 0},
        "cwd": "/",
        "env": [f"PATH={DEFAULT_PATH}", f"{MARK}={layout.sandbox}"],
        "capabilities": _capabilities(capabilities, root=True),
        "rlimits": _rlimits(confinement),
        "noNewPrivileges": True,
    }


def _capabilities(names: list[str], *, root: bool) -> dict[str, list[str]]:
    """As Docker gives them: a user other than root has none, but its set-user-id programs may."""
    return {"bounding": names, "effective": names if root else [], "permitted": names if root else []}


def _rlimits(confinement: Confinement) -> list[dict[str, Any]]:
    return [
        {"type": "RLIMIT_NOFILE", "soft": confinement.open_files, "hard": confinement.open_files},
        {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
    ]


def _mounts(layout: Layout, confinement: Confinement) -> list[dict[str, Any]]:
    system = ["nosuid", "noexec", "nodev"] + ([] if confinement.privileged else ["ro"])
    return [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
        _tmpfs("/dev", "mode=755", "size=65536k", "strictatime"),
        {
            "destination": "/dev/pts",
            "type": "devpts",
            "source": "devpts",
            "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        },
        _bind(layout.shared_memory, "/dev/shm", "nosuid", "nodev", "noexec"),  # noqa: S108
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": system},
        *_limits_view(layout),
        _bind(layout.busybox, _INIT, "ro", "nodev"),
        _bind(layout.hosts, "/etc/hosts", "nodev"),
        _bind(layout.resolv_conf, "/etc/resolv.conf", "nodev"),
        *(_bind(source, target, *flags) for target, (source, flags) in layout.memory_mounts.items()),
    ]


def _limits_view(layout: Layout) -> list[dict[str, Any]]:
    if not layout.limits:
        return []
    binds = [_bind(source, f"/sys/fs/cgroup{name}", "ro") for name, source in layout.limits.items()]
    return binds if "" in layout.limits else [_tmpfs("/sys/fs/cgroup", "nodev", "noexec", "mode=755"), *binds]


def _cgroups(layout: Layout, view: str) -> dict[str, str]:
    return {"cgroupsPath": f"{layout.cgroups_above}/{view}"} if layout.cgroups_above else {}


def _tmpfs(destination: str, *options: str) -> dict[str, Any]:
    return {"destination": destination, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", *options]}


def _bind(source: Path, destination: str, *options: str) -> dict[str, Any]:
    return {
        "destination": destination,
        "type": "bind",
        "source": str(source),
        "options": ["bind", "rprivate", *options],
    }


def _network(layout: Layout) -> list[dict[str, str]]:
    if layout.host_network:
        return []
    if layout.network is None:
        return [{"type": "network"}]
    return [{"type": "network", "path": str(layout.network)}]
