"""The seccomp profiles of a docker sandbox, as options for its engine.

The *agent* has the same profile as in the daemonless sandbox. Engines' own profiles are weaker: Podman's lets every
container make user namespaces and mount inside them, Docker's lets it make sockets of every family. Where our profile
cannot be applied, the engine's is used, and the trial's lock says so.

The *sidecar*'s profile, which the verifier inherits, leaves mounts and namespaces open, since a sidecar needs them.
They take a capability that the verifier gives up before it starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.sandboxes.host.seccomp import PROFILE, architectures, seccomp_filter
from seatrial.sandboxes.host.socket_rules import NO_SOCKETCALL, refused_sockets
from seatrial.system.whole_files import write_whole

_NEW_USER_NAMESPACE = 0x10000000
_ENOSYS = 38
_VERIFIERS = ("CAP_NET_RAW", "CAP_AUDIT_WRITE")
"""Those of the verifier's capabilities that decide about sockets."""
_REFUSED = (  # noqa: SIM905
    # the kernel itself
    "bpf create_module delete_module finit_module init_module kexec_file_load kexec_load lookup_dcookie perf_event_open"
    " query_module reboot swapoff swapon syslog userfaultfd io_uring_enter io_uring_register io_uring_setup"
    # the clock and the hardware
    " adjtimex clock_adjtime clock_settime ioperm iopl settimeofday stime vm86 vm86old"
    # keys, accounting, quotas: not divided by namespaces
    " acct add_key keyctl request_key quotactl quotactl_fd"
    # files by handle, and mounts in the way that the sidecar does not need
    " name_to_handle_at open_by_handle_at fsconfig fsmount fsopen fspick mount_setattr move_mount open_tree"
    # relics
    " _sysctl nfsservctl sysfs uselib ustat"
    # memory of others
    " kcmp migrate_pages move_pages pidfd_getfd process_madvise"
).split()


class Profiles:
    """The seccomp options for one engine's containers."""

    def __init__(self, info: Mapping[str, Any], shared: Path | None, packaged: Path = PROFILE) -> None:
        """``info`` is the engine's ``/info``, ``shared`` a folder that the engine can read too, ``packaged`` the
        profile of this machine's container packages."""
        self._known = any(
            option.startswith("name=seccomp") and "unconfined" not in option
            for option in info.get("SecurityOptions") or ()
        )
        self._is_podman = is_podman(info)
        self._machine = str(info.get("Architecture") or "")
        self._shared = shared
        self._packaged = packaged

    def agent(self, capabilities: Sequence[str]) -> list[str]:
        """Security options of the agent's container."""
        if not self._takes_ours:
            return []
        return self._option(json.dumps(self._ours(capabilities)))

    @property
    def sidecar(self) -> list[str]:
        return self._option(_sidecar_profile(self._machine))

    @property
    def description(self) -> str:
        """For the trial's lock; empty where there is no filter."""
        if not self._known:
            return ""
        if self._takes_ours:
            return f"seccomp profile {self._packaged}, stricter than Docker's"
        return "seccomp: the engine's default profile"

    @property
    def not_applied(self) -> tuple[str, ...]:
        if not self._known:
            return ("seccomp: the engine has none",)
        if self._takes_ours:
            return ()
        if self._is_podman and self._shared is None:
            return ("seccomp: Podman's default profile leaves user namespaces open, and it takes no other from afar",)
        return (
            f"seccomp: {self._packaged} is missing here, so the engine's own profile decides about socket families",
        )

    @property
    def _takes_ours(self) -> bool:
        can_be_told = self._shared is not None or not self._is_podman
        return self._known and can_be_told and self._packaged.is_file()

    def _ours(self, capabilities: Sequence[str]) -> dict[str, Any]:
        return seccomp_filter(capabilities, profile=self._packaged, machine=self._machine).section

    def _option(self, profile: str) -> list[str]:
        """Docker takes the profile itself, Podman the path of a file on its own machine."""
        if not self._is_podman:
            return [f"seccomp={profile}"]
        if self._shared is None:
            return []
        file = self._shared / f"{hashlib.sha256(profile.encode()).hexdigest()[:16]}.json"
        if not file.is_file():
            write_whole(file, profile)
        return [f"seccomp={file}"]


def is_podman(info: Mapping[str, Any]) -> bool:
    """Only Podman reports a version of buildah."""
    return "BuildahVersion" in info


def _sidecar_profile(machine: str) -> str:
    rules: list[dict[str, Any]] = [
        NO_SOCKETCALL,
        {"names": list(_REFUSED), "action": "SCMP_ACT_ERRNO"},
        {"names": ["unshare", "clone"], "action": "SCMP_ACT_ERRNO", "args": [_flag(_NEW_USER_NAMESPACE)]},
        # Its flags are out of a filter's sight. Told that it is missing, the C library takes the older call.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
        # The verifier's capabilities are a container's default, so this is the list that its programs are held to.
        *refused_sockets(_VERIFIERS),
    ]
    # Named, or the filter would kill the 32-bit programs of an image.
    names = list(architectures(machine)[1])
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "architectures": names, "syscalls": rules})


def _flag(value: int) -> dict[str, Any]:
    return {"index": 0, "value": value, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
