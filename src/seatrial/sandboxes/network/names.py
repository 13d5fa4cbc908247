"""How this machine itself finds names: its hosts file and its resolvers. ``resolver`` answers sandboxes from it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, ip_address
from pathlib import Path


class MachineNames:
    """What the machine's files say. They are read again when they have changed."""

    def __init__(self, resolv_conf: Path = Path("/etc/resolv.conf"), hosts: Path = Path("/etc/hosts")) -> None:
        self._servers = _Reread(resolv_conf, parse_servers)
        self._hosts = _Reread(hosts, parse_hosts)

    def in_hosts_file(self, name: str) -> tuple[IPv4Address, ...]:
        return self._hosts.value.get(name, ())

    @property
    def servers(self) -> tuple[str, ...]:
        return self._servers.value

    @property
    def search(self) -> tuple[str, ...]:
        return parse_search(self._servers.text)


class _Reread[T]:
    """What a file says, parsed again when the file has changed. A file that is not there says nothing."""

    def __init__(self, path: Path, parse: Callable[[str], T]) -> None:
        self._path = path
        self._parse = parse
        self._seen: tuple[int, int] | None = None
        self._text = ""
        self._value = parse("")

    @property
    def value(self) -> T:
        self._look()
        return self._value

    @property
    def text(self) -> str:
        self._look()
        return self._text

    def _look(self) -> None:
        try:
            stat = self._path.stat()
            seen = (stat.st_mtime_ns, stat.st_ino)
            if seen != self._seen:
                self._text = self._path.read_text(errors="replace")
                self._value, self._seen = self._parse(self._text), seen
        except OSError:
            self._text, self._value, self._seen = "", self._parse(""), None


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
    found: tuple[str, ...] = ()
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] in ("search", "domain"):
            found = tuple(words[1:])
    return found


def parse_hosts(text: str) -> dict[str, tuple[IPv4Address, ...]]:
    found: dict[str, tuple[IPv4Address, ...]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        try:
            address = IPv4Address(words[0]) if words else None
        except AddressValueError:
            continue
        if address is None or address.is_loopback:
            continue
        for name in words[1:]:
            key = name.rstrip(".").lower()
            found[key] = (*found.get(key, ()), address)
    return found
