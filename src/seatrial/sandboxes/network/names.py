"""How names are found: by the hosts file and the resolvers of this machine, or by name servers that a task chose.

``resolver`` answers sandboxes from ``MachineNames``. ``oci`` and ``docker`` decide with ``TaskNameServers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, ip_address
from pathlib import Path

from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.parsed_file import ParsedFile


class MachineNames:
    """The machine's files. They are read again when they have changed."""

    def __init__(self, resolv_conf: Path = Path("/etc/resolv.conf"), hosts: Path = Path("/etc/hosts")) -> None:
        self._resolv_conf = ParsedFile(resolv_conf, lambda text: (parse_servers(text), parse_search(text)))
        self._hosts = ParsedFile(hosts, parse_hosts)

    def in_hosts_file(self, name: str) -> tuple[IPv4Address, ...]:
        return self._hosts.value.get(name, ())

    @property
    def servers(self) -> tuple[str, ...]:
        return self._resolv_conf.value[0]

    @property
    def search(self) -> tuple[str, ...]:
        return self._resolv_conf.value[1]


def parse_servers(text: str) -> tuple[str, ...]:
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                found.append(str(ip_address(words[1])))
            except ValueError:
                continue
    return tuple(found)


def parse_search(text: str) -> tuple[str, ...]:
    lines = (line.split() for line in text.splitlines())
    found = [words[1:] for words in lines if len(words) >= 2 and words[0] in ("search", "domain")]
    return tuple(found[-1]) if found else ()


def parse_hosts(text: str) -> dict[str, tuple[IPv4Address, ...]]:
    """Addresses by name, without loopback addresses: they mean something else inside a sandbox."""
    found: dict[str, tuple[IPv4Address, ...]] = {}
    for line in text.splitlines():
        place, *names = line.partition("#")[0].split() or [""]
        try:
            address = IPv4Address(place)
        except AddressValueError:
            continue
        for name in names if not address.is_loopback else ():
            key = name.rstrip(".").lower()
            found[key] = (*found.get(key, ()), address)
    return found


@dataclass(frozen=True, slots=True)
class TaskNameServers:
    """The name servers from a task's compose file. Empty if the sandbox uses Seatrial's own."""

    servers: tuple[str, ...] = ()
    not_applied: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: tuple[str, ...], policy: NetworkPolicy | None) -> TaskNameServers:
        """``policy`` is ``None`` on the machine's own network.

        An allowlist by name needs Seatrial's name server: it refuses other names and opens the addresses it answers
        with. There the task's choice is not applied, and the trial's lock says so."""
        if wanted and policy is not None and policy.network_mode is NetworkMode.ALLOWLIST:
            return cls(not_applied=(f"dns {', '.join(wanted)}: an allowlist's names are answered by this machine",))
        return cls(servers=wanted)

    def resolv_conf(self, usual: str) -> str:
        """The text of ``/etc/resolv.conf``, made from the one that names Seatrial's server."""
        if not self.servers:
            return usual
        kept = [line for line in usual.splitlines() if not line.startswith("nameserver")]
        return "".join(f"{line}\n" for line in [*(f"nameserver {server}" for server in self.servers), *kept])
