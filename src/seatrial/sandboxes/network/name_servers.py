"""Whom a sandbox asks for names: those that the task's compose file says, unless an allowlist needs ours.

An allowlist by name works because our own name server refuses other names and opens the way to what it answers, so
there a task's own choice is not applied, and the trial's lock says so. ``oci`` and ``docker`` decide with this.
"""

from __future__ import annotations

from dataclasses import dataclass

from harbor.models.task.config import NetworkMode, NetworkPolicy


@dataclass(frozen=True, slots=True)
class Asked:
    """The task's own name servers; none if ours are to be asked."""

    servers: tuple[str, ...] = ()
    not_applied: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: tuple[str, ...], policy: NetworkPolicy | None) -> Asked:
        """``policy`` is ``None`` on the machine's own network."""
        if wanted and policy is not None and policy.network_mode is NetworkMode.ALLOWLIST:
            return cls(not_applied=(f"dns {', '.join(wanted)}: an allowlist's names are answered by this machine",))
        return cls(servers=wanted)

    def resolv_conf(self, usual: str) -> str:
        """The file's text, from the one that names ours."""
        if not self.servers:
            return usual
        kept = [line for line in usual.splitlines() if not line.startswith("nameserver")]
        return "".join(f"{line}\n" for line in [*(f"nameserver {server}" for server in self.servers), *kept])
