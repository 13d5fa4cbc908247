"""The machine's side of the sandboxes' network: one interface, one firewall table, and permission to forward.

``router`` opens it once per process. Everything made here carries the stamp of this process, so that a later process
can find exactly what a killed one left (``clear_leftovers``). All functions block for milliseconds. They belong in the
thread for kernel work, in the machine's own network namespace.

Forwarding is switched on only for the interfaces that need it, never for the whole machine. In that case the table
refuses new connections between *other* interfaces, as before, and the last process to end switches forwarding off.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network

from seatrial.domain.frozen import Frozen
from seatrial.errors import SetupProblem
from seatrial.sandboxes.network import links
from seatrial.sandboxes.network.firewall import UPLINK
from seatrial.sandboxes.network.forward_rules import (
    accept_forwarding,
    list_elements,
    list_tables,
    remove_accepts,
    run_nft,
)
from seatrial.sandboxes.network.namespace import Namespace, get_value, set_values
from seatrial.sandboxes.network.netlink import ROUTE, NetlinkError, NetlinkSocket
from seatrial.system.processes import ProcessIdentity, boot_id

_LOG = logging.getLogger(__name__)

MACHINE_MAC = bytes.fromhex("02736561 0001")
ROUTER_MAC = bytes.fromhex("02736561 0002")
UPLINK_INDEX = 2
"""The kernel's number for the first interface after the loopback."""

_PREFIX = "seat"
_LINK_NAME = re.compile(r"seat\d{3}")
_STAMP = re.compile(r"(\w+)_p(\d+)_s(\d+)_n(\d+)")
_MARK = re.compile(r"seatrial(?:_\d{3}_| )(\w+)")
"""The name of a table, or the label of an interface."""
_LOCK = "/run/seatrial-network.lock"
_POOLS = tuple(IPv4Network(pool) for pool in ("198.18.0.0/15", "100.80.0.0/15", "10.214.0.0/15"))
_BLOCK_BITS = 21
_DEFAULT_MTU = 1500

RULES = """
table inet {table} {{
    set guarded {{ type ifname; {guarded} }}
    chain input {{
        type filter hook input priority filter; policy accept;
        iifname "{link}" drop
    }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
        iifname @guarded oifname != "{prefix}*" ct state new drop
        oifname "{link}" ct state established,related accept
        oifname "{link}" drop
        iifname "{link}" meta nfproto != ipv4 drop
        iifname "{link}" ip saddr != {block} drop
        iifname "{link}" oifname "{prefix}*" drop
        iifname "{link}" ct status dnat drop
    }}
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {block} oifname != "{link}" masquerade
    }}
}}
"""
"""Packets that this machine redirects (``dnat``, as for a container's published port) go to one of its services."""


class ProcessStamp(Frozen):
    """The installation and the process that made a table or an interface.

    It is part of table names and interface labels, to tell leftovers of a killed process from what is in use. It does
    not name the boot, because a reboot removes both."""

    install: str
    process: ProcessIdentity

    @classmethod
    def of_this_process(cls, install: str) -> ProcessStamp:
        return cls(install=re.sub(r"[^A-Za-z0-9]", "", install) or "unnamed", process=ProcessIdentity.mine())

    @classmethod
    def parse(cls, words: str) -> ProcessStamp | None:
        found = _STAMP.fullmatch(words)
        if not found:
            return None
        install, pid, started, namespace = found.groups()
        process = ProcessIdentity(pid=int(pid), started=int(started), namespace=int(namespace), boot=boot_id())
        return cls(install=install, process=process)

    def __str__(self) -> str:
        return f"{self.install}_p{self.process.pid}_s{self.process.started}_n{self.process.namespace}"

    @property
    def dead(self) -> bool:
        """Whether the process has ended for certain. False for a process of another PID namespace."""
        return self.process.is_dead


class Block(Frozen):
    """The addresses for the sandboxes of one process. The number is part of the interface's name, so it is unique."""

    number: int
    network: IPv4Network

    @property
    def gateway(self) -> IPv4Address:
        """The address of the router and of the name server."""
        return self.network[1]

    @property
    def machine(self) -> IPv4Address:
        """The router's next hop. The machine does not answer to it."""
        return self.network[2]

    def sandboxes(self) -> Iterator[IPv4Address]:
        return (self.network[place] for place in range(3, self.network.num_addresses - 1))


class Uplink:
    """This process's interface on the machine's side, from ``open`` to ``close``."""

    def __init__(self, stamp: ProcessStamp) -> None:
        self._stamp = stamp
        self._table = ""
        self._kernel = NetlinkSocket(ROUTE)
        self._enabled: tuple[str, ...] = ()
        self._link: links.Link | None = None
        self.block: Block | None = None
        self.mtu = _DEFAULT_MTU

    def open(self, router: Namespace) -> Block:
        """Connects the router's namespace. On failure ``close`` still has to be called."""
        with _locked():
            _clear_leftovers(self._kernel)
            self.mtu = self._way_out()
            self.block = self._claim(router)
            self._install(self.block)
            self._enable_forwarding()
            self._route(self.block)
        return self.block

    def close(self) -> None:
        with _locked():
            if self._link is not None:
                self._kernel.request([links.remove(self._link.index)], tolerate=frozenset({errno.ENODEV}))
                remove_accepts(lambda mark: mark == self._table, _is_ours)
                run_nft(f"table inet {self._table}\ndelete table inet {self._table}")
                _restore_forwarding(self._enabled)
                self._link = None
        self._kernel.close()

    def refresh(self) -> int:
        """Follows changes of other firewalls and interfaces, restores flushed rules, then clears leftovers."""
        assert self.block is not None
        with _locked():
            if self._table not in list_tables():
                _LOG.warning("Another program removed the firewall table %s. It is installed again.", self._table)
                self._install(self.block)
            self._enable_forwarding()
            return _clear_leftovers(self._kernel)

    def settle(self) -> None:
        """Call this when the router's end is up."""
        assert self._link is not None
        self._kernel.request([links.settle(self._link.index)])

    def own_addresses(self) -> set[IPv4Address]:
        """All addresses of this machine."""
        return set(links.list_addresses(self._kernel))

    def _way_out(self) -> int:
        """The largest packet size that all default routes take."""
        ways = {route.link for route in links.list_routes(self._kernel) if route.network.prefixlen == 0}
        return min((link.mtu for link in links.list_links(self._kernel) if link.index in ways), default=_DEFAULT_MTU)

    def _claim(self, router: Namespace) -> Block:
        routes = [route.network for route in links.list_routes(self._kernel) if route.network.prefixlen > 0]
        addresses = links.list_addresses(self._kernel)
        for block in _blocks():
            if any(map(block.network.overlaps, routes)) or any(map(block.network.__contains__, addresses)):
                continue
            name = f"{_PREFIX}{block.number:03d}"
            near, far = links.End(name, 0, MACHINE_MAC), links.End(UPLINK, 0, ROUTER_MAC, router.file)
            try:
                self._kernel.request([links.veth(near, far, self.mtu)])
            except NetlinkError as error:
                if error.errno == errno.EEXIST:
                    continue
                raise
            self._link = next(link for link in links.list_links(self._kernel) if link.name == name)
            self._kernel.request([links.label(self._link.index, f"seatrial {self._stamp}")])
            self._table = f"seatrial_{block.number:03d}_{self._stamp}"
            return block
        raise SetupProblem(
            "There is no free range of addresses for sandboxes on this machine.",
            fix=f"Free a part of {', '.join(map(str, _POOLS))}, or stop other Seatrial workers.",
        )

    def _install(self, block: Block) -> None:
        assert self._link is not None
        guarded = ", ".join(f'"{name}"' for name in self._enabled)
        run_nft(
            RULES.format(
                table=self._table,
                link=self._link.name,
                prefix=_PREFIX,
                block=block.network,
                guarded=f"elements = {{ {guarded} }}" if guarded else "",
            )
        )

    def _route(self, block: Block) -> None:
        assert self._link is not None
        self._kernel.request(
            [
                links.neighbour(self._link.index, block.gateway, ROUTER_MAC),
                links.route(self._link.index, block.network, block.gateway),
            ]
        )

    def _enable_forwarding(self) -> None:
        assert self._link is not None
        try:
            set_values(
                {f"ipv4/conf/{self._link.name}/forwarding": "1", f"ipv6/conf/{self._link.name}/disable_ipv6": "1"}
            )
            enabled = self._forwarders()
        except OSError as error:
            raise SetupProblem(
                f"Forwarding cannot be switched on ({error}).", fix="Run: sysctl -w net.ipv4.ip_forward=1"
            ) from error
        if set(enabled) != set(self._enabled):
            script = [f"flush set inet {self._table} guarded"]
            script += [f'add element inet {self._table} guarded {{ "{name}" }}' for name in enabled]
            run_nft("\n".join(script))
            self._enabled = enabled
        accept_forwarding(self._link.name, self._table, _is_ours)

    def _forwarders(self) -> tuple[str, ...]:
        """Enables forwarding on every interface with a route. Returns those that forward only because of Seatrial."""
        if get_value("ipv4/ip_forward") == "1":
            return ()
        names = {link.index: link.name for link in links.list_links(self._kernel)}
        leaving = {names.get(route.link, "") for route in links.list_routes(self._kernel)}
        inherited = {name for table in filter(_is_ours, list_tables()) for name in _guarded(table)}
        enabled = []
        for name in sorted(leaving):
            if not name or name.startswith(_PREFIX) or name == "lo":
                continue
            setting = f"ipv4/conf/{name}/forwarding"
            if get_value(setting) == "0":
                set_values({setting: "1"})
                enabled.append(name)
            elif name in inherited:
                enabled.append(name)
        return tuple(enabled)


def clear_leftovers() -> int:
    """Removes what killed processes left on this machine. Returns how many things that were."""
    with _locked(), NetlinkSocket(ROUTE) as kernel:
        return _clear_leftovers(kernel)


def _clear_leftovers(kernel: NetlinkSocket) -> int:
    """Removes interfaces first, because a table has to filter its interface until it is removed."""
    dead = [link for link in links.list_links(kernel) if _LINK_NAME.fullmatch(link.name) and _is_dead(link.alias)]
    kernel.request([links.remove(link.index) for link in dead], tolerate=frozenset({errno.ENODEV}))
    tables = list(filter(_is_dead, list_tables()))
    if not tables:
        return len(dead)
    enabled = tuple({name for table in tables for name in _guarded(table)})
    marks = remove_accepts(_is_dead, _is_ours)
    run_nft("\n".join(f"delete table inet {name}" for name in tables))
    _restore_forwarding(enabled)
    return len(dead) + len(tables) + marks


def _restore_forwarding(enabled: tuple[str, ...]) -> None:
    """Switches off what a Seatrial process switched on, unless another one still needs it."""
    if enabled and get_value("ipv4/ip_forward") == "0" and not any(map(_is_ours, list_tables())):
        set_values({f"ipv4/conf/{name}/forwarding": "0" for name in enabled})


def _guarded(table: str) -> tuple[str, ...]:
    """The interfaces that forward only because of Seatrial. Each of its tables has the list."""
    return list_elements(table, "guarded")


def _is_ours(table: str) -> bool:
    return _stamp_of(table) is not None


def _is_dead(mark: str) -> bool:
    """For table names, for interface labels, and for marks of rules in other tables, which are table names."""
    stamp = _stamp_of(mark)
    return stamp is not None and stamp.dead


def _stamp_of(mark: str) -> ProcessStamp | None:
    found = _MARK.fullmatch(mark)
    return ProcessStamp.parse(found[1]) if found else None


def _blocks() -> Iterator[Block]:
    networks = (block for pool in _POOLS for block in pool.subnets(new_prefix=_BLOCK_BITS))
    return (Block(number=number, network=network) for number, network in enumerate(networks))


@contextmanager
def _locked() -> Iterator[None]:
    """One process at a time: the last one must not switch off what a new one needs."""
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
