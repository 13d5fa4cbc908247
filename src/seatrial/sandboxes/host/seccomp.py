"""Which system calls a sandbox may make: the profile of the machine's container packages, made as strict as Docker's.

``container_spec`` puts it into the runtime's configuration. The packaged profile lets every container make user
namespaces and mount inside them, for nested containers; here that takes CAP_SYS_ADMIN, as with Docker.

Compiling a profile takes the runtime 20 ms. crun leaves what it compiled beside the container's state, so the first
sandbox pays and ``CompiledFilters`` hands the same bytes to all later ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SetupProblem

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
_ARCHITECTURES = {
    "x86_64": ("amd64", ("SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32")),
    "aarch64": ("arm64", ("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM")),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """The ``linux.seccomp`` section of a runtime's configuration, and a name for it."""

    section: dict[str, Any]
    digest: str


def seccomp_filter(capabilities: Sequence[str], *, nests_processes: bool = False, profile: Path = PROFILE) -> Filter:
    """The filter for processes with these capabilities.

    ``nests_processes`` adds the one call by which a sandbox's first process makes the agent's process namespace; it
    needs a capability that no command has."""
    try:
        packaged = json.loads(profile.read_text())
    except FileNotFoundError:
        raise SetupProblem(
            f"{profile} is missing, so sandboxes would run without seccomp.",
            fix="Run: apt-get install golang-github-containers-common",
        ) from None
    architecture, names = _ARCHITECTURES.get(platform.machine(), (platform.machine(), ()))
    rules = [_flattened(rule) for rule in packaged["syscalls"] if _applies(rule, set(capabilities), architecture)]
    if "CAP_SYS_ADMIN" not in capabilities:
        rules = _tightened(rules, {"unshare"} if nests_processes else set())
    if nests_processes:
        rules.append(_allow(["unshare"], [{"index": 0, "value": CLONE_NEWPID, "op": "SCMP_CMP_EQ"}]))
    section = {key: packaged[key] for key in ("defaultAction", "defaultErrnoRet") if key in packaged}
    section.update(architectures=list(names), syscalls=rules)
    return Filter(section, hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest())


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
    kept = []
    for rule in rules:
        names = [name for name in rule["names"] if name not in _ADMINISTRATIVE]
        if names:
            kept.append({**rule, "names": names})
    no_namespace = [{"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    # The C library falls back to ``clone`` where ``clone3``, whose flags a filter cannot see, does not exist.
    missing = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS}
    names = sorted(_ADMINISTRATIVE - {"clone", "clone3"} - decided_elsewhere)
    refused = {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM}
    return [*kept, _allow(["clone"], no_namespace), missing, refused]


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

    def keep(self, made_of: Filter, compiled: Path) -> None:
        """Remembers what the runtime made of a filter, if it left anything."""
        if made_of.digest in self._known or not compiled.is_file() or compiled.stat().st_size == 0:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        scratch = self._directory / f".{made_of.digest}.{os.getpid()}.{threading.get_ident()}"
        scratch.write_bytes(compiled.read_bytes())
        scratch.replace(self._directory / made_of.digest)
