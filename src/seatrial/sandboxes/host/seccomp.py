"""Which system calls a sandbox may make: the profile of the machine's container packages, made stricter.

``container_spec`` puts it into the runtime's configuration, ``docker.seccomp`` hands it to the engine. The packaged
profile lets every container make user namespaces and mount inside them, for nested containers; here that takes
CAP_SYS_ADMIN, as with Docker. Sockets are held to a list of families (``socket_rules``), which is stricter than Docker,
and so are files by handle, descriptors of other processes and rings (io_uring), whose operations no filter sees.

TIOCSTI is not filtered: no terminal reaches from a sandbox to anything else, so typing into one reaches nothing.

Compiling a profile takes the runtime 20 ms. crun leaves what it compiled beside the container's state, so the first
sandbox pays and ``CompiledFilters`` hands the same bytes to all later ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SetupProblem
from seatrial.sandboxes.host.socket_rules import NO_SOCKETCALL, SOCKET_CALLS, allowed_sockets, refused_sockets
from seatrial.system.whole_files import write_whole

PROFILE = Path("/usr/share/containers/seccomp.json")
CLONE_NEWPID = 0x20000000
_NEW_NAMESPACES = 0x7E020000
_EPERM = 1
_ENOSYS = 38
_ADMINISTRATIVE = frozenset(
    [
        "bpf",
        "clone",
        "clone3",
        "fanotify_init",
        "fsconfig",
        "fsmount",
        "fsopen",
        "fspick",
        "lookup_dcookie",
        "mount",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "perf_event_open",
        "pivot_root",
        "quotactl",
        "quotactl_fd",
        "setdomainname",
        "sethostname",
        "setns",
        "syslog",
        "umount",
        "umount2",
        "unshare",
        "keyctl",
        "add_key",
        "request_key",
        "userfaultfd",
    ]
)
_NEVER = frozenset(
    [
        "io_uring_enter",
        "io_uring_register",
        "io_uring_setup",
        "name_to_handle_at",
        "open_by_handle_at",
        "pidfd_getfd",
    ]
)
"""Refused with any capabilities."""
_ARCHITECTURES = {
    "x86_64": ("amd64", ("SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32")),
    "aarch64": ("arm64", ("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM")),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """The ``linux.seccomp`` section of a runtime's configuration, and a name for it."""

    section: dict[str, Any]
    digest: str


def seccomp_filter(
    capabilities: Sequence[str], *, nests_processes: bool = False, profile: Path = PROFILE, machine: str = ""
) -> Filter:
    """The filter for processes with these capabilities. ``machine`` is the kind of processor, if not this one's.

    ``nests_processes`` adds the one call by which a sandbox's first process makes the agent's process namespace; it
    needs a capability that no command has."""
    try:
        packaged = json.loads(profile.read_text())
    except FileNotFoundError:
        raise SetupProblem(
            f"{profile} is missing, so sandboxes would run without seccomp.",
            fix="Run: apt-get install golang-github-containers-common",
        ) from None
    architecture, names = architectures(machine)
    rules = [_flattened(rule) for rule in packaged["syscalls"] if _applies(rule, set(capabilities), architecture)]
    rules = _without(rules, SOCKET_CALLS | _NEVER)
    if "CAP_SYS_ADMIN" not in capabilities:
        rules = _tightened(rules, {"unshare"} if nests_processes else set())
    if nests_processes:
        rules.append(_allow(["unshare"], [{"index": 0, "value": CLONE_NEWPID, "op": "SCMP_CMP_EQ"}]))
    rules += [*allowed_sockets(capabilities), *refused_sockets(capabilities), _refuse(sorted(_NEVER))]
    rules.insert(0, NO_SOCKETCALL)
    section = {key: packaged[key] for key in ("defaultAction", "defaultErrnoRet") if key in packaged}
    section.update(architectures=list(names), syscalls=rules)
    return Filter(section, hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest())


def architectures(machine: str = "") -> tuple[str, tuple[str, ...]]:
    """The name that profiles have for a kind of processor, this one's by default, and the ways into its kernel."""
    machine = machine or platform.machine()
    return _ARCHITECTURES.get(machine, (machine, ()))


def _applies(rule: dict[str, Any], capabilities: set[str], architecture: str) -> bool:
    includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
    wanted, refused = set(includes.get("caps") or ()), set(excludes.get("caps") or ())
    places, elsewhere = includes.get("arches"), excludes.get("arches") or ()
    if not wanted <= capabilities or refused & capabilities:
        return False
    return (not places or architecture in places) and architecture not in elsewhere


def _flattened(rule: dict[str, Any]) -> dict[str, Any]:
    kept = {key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key)}
    return {"names": kept.pop("names"), **kept}


def _tightened(rules: Iterable[dict[str, Any]], decided_elsewhere: set[str]) -> list[dict[str, Any]]:
    kept = _without(rules, _ADMINISTRATIVE)
    no_namespace = [{"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    # The C library falls back to ``clone`` where ``clone3``, whose flags a filter cannot see, does not exist.
    missing = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS}
    names = sorted(_ADMINISTRATIVE - {"clone", "clone3"} - decided_elsewhere)
    return [*kept, _allow(["clone"], no_namespace), missing, _refuse(names)]


def _without(rules: Iterable[dict[str, Any]], removed: Set[str]) -> list[dict[str, Any]]:
    kept = [{**rule, "names": [name for name in rule["names"] if name not in removed]} for rule in rules]
    return [rule for rule in kept if rule["names"]]


def _refuse(names: list[str]) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM}


def _allow(names: list[str], args: list[dict[str, Any]]) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ALLOW", "args": args}


class CompiledFilters:
    """Filters that a runtime has compiled before, by profile and runtime."""

    ANNOTATION = "run.oci.seccomp_bpf_data"
    """crun takes the compiled filter from here and needs no look at the section; other runtimes ignore it."""

    def __init__(self, directory: Path, runtime: str) -> None:
        self._directory = directory / hashlib.sha256(f"{runtime} {platform.machine()}".encode()).hexdigest()[:16]
        self._known: dict[str, str] = {}

    def annotations(self, wanted: Filter) -> dict[str, str]:
        if wanted.digest not in self._known:
            try:
                compiled = (self._directory / wanted.digest).read_bytes()
            except FileNotFoundError:
                return {}
            self._known[wanted.digest] = base64.b64encode(compiled).decode()
        return {self.ANNOTATION: self._known[wanted.digest]}

    def save(self, made_of: Filter, compiled: Path) -> None:
        """Remembers what the runtime made of a filter, if it left anything."""
        if made_of.digest in self._known or not compiled.is_file() or compiled.stat().st_size == 0:
            return
        write_whole(self._directory / made_of.digest, compiled.read_bytes())
