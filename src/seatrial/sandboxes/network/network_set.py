"""All sandbox networks of a process: one namespace for each sandbox, with a policy that may change while it runs.

``oci`` acquires a network for each sandbox and gives its path to the container runtime, ``docker`` adopts the
namespaces of its containers. This module connects the parts: ``network`` is one network, ``reach`` says what a policy
means, ``router`` and ``uplink`` make the lines, ``firewall`` filters, ``resolver`` answers names.

Sandboxes use Seatrial's name server, which asks the resolvers of this machine, so names resolve inside as they do
outside. A package mirror at a *private* address works only if the operator opens it (``private_destinations``):
otherwise a task could reach any private service that has a name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self
from weakref import WeakKeyDictionary

from harbor.models.task.config import NetworkPolicy

from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.errors import SandboxFault, SetupProblem
from seatrial.sandboxes.network.firewall import ClosedNetworks
from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.names import MachineNames
from seatrial.sandboxes.network.namespace import Namespace
from seatrial.sandboxes.network.network import HostNetwork, RoutedNetwork, SandboxNetwork
from seatrial.sandboxes.network.reach import (
    NEVER,
    PRIVATE,
    Reach,
    parse_networks,
    permitted_reach,
    require_host_network,
)
from seatrial.sandboxes.network.resolver import NameServer, Resolver
from seatrial.sandboxes.network.router import Line, Router
from seatrial.sandboxes.network.uplink import ProcessStamp, clear_leftovers
from seatrial.sandboxes.options import SandboxOptions

_LOG = logging.getLogger(__name__)
_IN_STOCK = 4


class SandboxNetworks:
    """The networks of one process. The constructor does nothing; the first ``acquire`` sets up the router."""

    def __init__(
        self,
        options: SandboxOptions,
        *,
        install: str = "stock",
        names: MachineNames | None = None,
        clock: Callable[[], float] = time.monotonic,
        follow_sec: float = 15.0,
        limits: NetworkLimits | None = None,
    ) -> None:
        """Every ``follow_sec`` seconds a running set looks for changes of the machine (see ``sweep``)."""
        self._options = options
        self._install = install
        self._names = names or MachineNames()
        self._clock = clock
        self._limits = limits or NetworkLimits()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seatrial-network")
        self._opening: asyncio.Task[Router] | None = None
        self._router: Router | None = None
        self._name_server: NameServer | None = None
        self._stock: deque[Line] = deque()
        self._stocking: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._follow_sec = follow_sec
        self._held: dict[IPv4Address, RoutedNetwork] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def acquire(self, policy: NetworkPolicy, sandbox_id: str) -> SandboxNetwork:
        """A network for one sandbox. ``SetupProblem`` with a fix if this machine cannot have any."""
        reach = self.permitted(policy)
        router = await self._opened()
        line = self._stock.popleft() if self._stock else await self._new_line(router)
        network = await self._connect(router, line, reach, sandbox_id)
        if len(self._stock) < _IN_STOCK and (self._stocking is None or self._stocking.done()):
            self._stocking = asyncio.create_task(self._fill_stock(router))
        return network

    async def adopt(self, policy: NetworkPolicy, sandbox_id: str, namespace: Path) -> SandboxNetwork:
        """The same for a sandbox that already has an empty namespace, for example from a container engine."""
        reach = self.permitted(policy)
        router = await self._opened()
        with _explained():
            line = await self._make_line(
                router, lambda: router.line_to(Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)))
            )
        return await self._connect(router, line, reach, sandbox_id)

    async def name_server(self) -> IPv4Address:
        """The address of the sandboxes' name server. It is known before there is a sandbox."""
        return (await self._opened()).gateway

    def permitted(self, policy: NetworkPolicy) -> Reach:
        return permitted_reach(policy, self._options)

    async def _connect(self, router: Router, line: Line, reach: Reach, sandbox_id: str) -> RoutedNetwork:
        network = RoutedNetwork(self, router, line, sandbox_id, self._clock)
        try:
            await network.change(reach)
        except BaseException:
            router.forget(line)
            raise
        self._held[line.address] = network
        return network

    async def host(self, sandbox_id: str) -> SandboxNetwork:
        """The machine's own network, if the operator allows it."""
        require_host_network(self._options)
        return HostNetwork(sandbox_id)

    async def sweep(self) -> int:
        """Removes what killed processes left on this machine, and returns how many things that were.

        Also follows changes of the machine: its addresses, its other firewalls, the age of answers. An open set sweeps
        itself every few seconds. A call on a set that is not open makes no network."""
        for network in list(self._held.values()):
            network.expire()
        router = self._router
        return await self.work(clear_leftovers if router is None else router.refresh)

    async def close(self) -> None:
        """Cuts off every sandbox that still has a network, and undoes all changes of the machine."""
        if self._opening is not None:
            await asyncio.gather(self._opening, return_exceptions=True)
        tasks = [task for task in (self._stocking, self._following) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._name_server is not None:
            await self._name_server.close()
            self._name_server = None
        for network in list(self._held.values()):
            await network.release()
        if (router := self._router) is not None:
            self._router = None
            await self.work(lambda: None)  # a line whose caller was cancelled is made and forgotten after this
            while self._stock:
                router.forget(self._stock.popleft())
            await self.work(router.close)
        self._thread.shutdown(wait=False)

    async def work[T](self, step: Callable[[], T]) -> T:
        """Runs a step in the thread for kernel work."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    @property
    def search(self) -> tuple[str, ...]:
        """This machine's search domains."""
        return self._names.search

    def discard(self, network: RoutedNetwork) -> None:
        self._held.pop(network.address, None)

    async def _opened(self) -> Router:
        """The router, opened once. A cancelled caller does not stop the opening: nobody would close half a router."""
        if self._opening is None or (self._opening.done() and self._router is None):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Router:
        closed = () if self._options.allow_private_network else PRIVATE
        closed_networks = ClosedNetworks(NEVER, closed, parse_networks(self._options.private_destinations))
        with _explained():
            router = await self.work(
                lambda: Router(ProcessStamp.of_this_process(self._install), closed_networks, self._limits)
            )
            try:
                await self.work(router.open)
                datagrams, streams = await self.work(router.name_server_sockets)
                self._name_server = NameServer(Resolver(self._names, self._held.get, limits=self._limits))
                await self._name_server.start(datagrams, streams)
            except BaseException:
                await self.work(router.close)
                raise
        self._router = router
        following = Duties(system_clock).forever("network check", self.sweep, self._follow_sec, later=True)
        self._following = asyncio.create_task(following)
        return router

    async def _new_line(self, router: Router) -> Line:
        try:
            return await self._make_line(router, router.new_line)
        except OSError as error:
            raise SandboxFault(f"A sandbox's network could not be made: {error}") from error

    async def _make_line(self, router: Router, make: Callable[[], Line]) -> Line:
        """Makes a line in the thread for kernel work. A line that arrives after a cancellation is removed."""
        making = asyncio.get_running_loop().run_in_executor(self._thread, make)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(lambda made: None if made.exception() else router.forget(made.result()))
            raise

    async def _fill_stock(self, router: Router) -> None:
        try:
            while len(self._stock) < _IN_STOCK:
                self._stock.append(await self._new_line(router))
        except SandboxFault as error:  # the next ``acquire`` tries again and reports it
            _LOG.warning("No network could be made in advance: %s", error)


class SharedNetworks:
    """One set for each event loop that starts sandboxes, closed when that loop ends.

    Harbor constructs each sandbox separately. The sandboxes of one event loop find their common set here."""

    def __init__(self) -> None:
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, SandboxNetworks]] = WeakKeyDictionary()
        self._closers: set[asyncio.Task[None]] = set()

    def of(self, options: SandboxOptions, install: str) -> SandboxNetworks:
        loop = asyncio.get_running_loop()
        known = self._open.setdefault(loop, {})
        key = f"{install} {options.model_dump_json()}"
        if key not in known:
            known[key] = SandboxNetworks(options, install=install)
            closer = loop.create_task(_close_at_end(known, key))
            self._closers.add(closer)
            closer.add_done_callback(self._closers.discard)
        return known[key]


async def _close_at_end(known: dict[str, SandboxNetworks], key: str) -> None:
    """Waits for the end of the loop, which cancels every task and waits for it."""
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await known.pop(key).close()


@contextmanager
def _explained() -> Iterator[None]:
    """Turns a refusal of the kernel into a ``SetupProblem``."""
    try:
        yield
    except PermissionError as error:
        who = "root" if os.geteuid() == 0 else "this user"
        raise SetupProblem(
            f"The kernel does not let {who} set up networks for sandboxes ({error}).",
            fix="Run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN, or set CONTAINER_NETWORK_MODE=none.",
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupProblem(
            f"The network for sandboxes could not be set up: {error}.", fix="Run: seatrial doctor"
        ) from error
