"""The networks of daemonless sandboxes: one namespace each, and what it may reach, changeable while it runs.

``oci`` acquires a network for each sandbox and hands its path to the container runtime, ``docker`` has the namespaces
of its containers adopted; ``doctor`` uses ``probe``. This module puts the parts together and holds no detail of any:
``network`` is a single one, ``reach`` says what a policy means, ``router`` and ``uplink`` make the lines, ``firewall``
filters, ``resolver`` answers names.

What is decided here:

- *Names.* Sandboxes ask a name server of ours, which asks whatever this machine asks. So names resolve inside as they
  do outside, also where the machine's resolver is private, and package mirrors that the machine reaches at a public
  address work at once. A mirror at a *private* address has to be granted by the operator (``private_destinations``): to
  open whatever private address a name leads to would let a task reach any service it can name.
- *A path under /proc* names the namespace. It works in every mount namespace and vanishes with this process.
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
from types import TracebackType
from typing import Self

from harbor.models.task.config import NetworkPolicy

from seatrial.errors import SandboxFault, SeatrialError, SetupProblem
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
from seatrial.sandboxes.network.router import Closures, Line, Router
from seatrial.sandboxes.network.stamp import ProcessStamp
from seatrial.sandboxes.network.uplink import clear_leftovers
from seatrial.sandboxes.options import SandboxOptions

_LOG = logging.getLogger(__name__)
_IN_STOCK = 4


class SandboxNetworks:
    """All networks that this process gives out. Cheap to make; nothing is set up before the first ``acquire``."""

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
        """``follow_sec`` is how often a running set looks for what changed on the machine (see ``sweep``)."""
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def acquire(self, policy: NetworkPolicy, sandbox_id: str) -> SandboxNetwork:
        """A network for one sandbox. ``SetupProblem`` where this machine cannot have any, with what would help."""
        reach = self.permitted(policy)
        router = await self._opened()
        line = self._stock.popleft() if self._stock else await self._new_line(router)
        network = await self._given(router, line, reach, sandbox_id)
        self._restock(router)
        return network

    async def adopt(self, policy: NetworkPolicy, sandbox_id: str, namespace: Path) -> SandboxNetwork:
        """The same for a sandbox that has an empty namespace already, as a container engine makes one."""
        reach = self.permitted(policy)
        router = await self._opened()
        making = asyncio.ensure_future(
            self.work(lambda: router.line_to(Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC))))
        )
        try:
            with _explained():
                line = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(lambda made: None if made.exception() else router.forget(made.result()))
            raise
        return await self._given(router, line, reach, sandbox_id)

    async def name_server(self) -> IPv4Address:
        """Whom sandboxes ask for names; known before there is one."""
        return (await self._opened()).gateway

    def permitted(self, policy: NetworkPolicy) -> Reach:
        return permitted_reach(policy, self._options)

    async def _given(self, router: Router, line: Line, reach: Reach, sandbox_id: str) -> RoutedNetwork:
        network = RoutedNetwork(self, router, line, sandbox_id, self._clock)
        try:
            await network.change(reach)
        except BaseException:
            router.forget(line)
            raise
        self._held[line.address] = network
        return network

    async def host(self, sandbox_id: str) -> SandboxNetwork:
        """The machine's own network, where the operator allowed that."""
        require_host_network(self._options)
        return HostNetwork(sandbox_id)

    async def sweep(self) -> int:
        """Removes what killed processes left on this machine; how many things that were.

        Also follows what changed on the machine meanwhile: its addresses, its other firewalls, the age of answers. Once
        there are networks this happens by itself every few seconds; before, it may be called without making any.
        """
        for network in list(self._held.values()):
            network.expire()
        router = self._router
        return await self.work(clear_leftovers if router is None else router.refresh)

    async def close(self) -> None:
        """Cuts off every sandbox that still has a network, and leaves the machine as it was."""
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
            await self.work(lambda: None)  # a line that was being made when its asker gave up is in stock after this
            while self._stock:
                router.forget(self._stock.popleft())
            await self.work(router.close)
        self._thread.shutdown(wait=False)

    async def work[T](self, step: Callable[[], T]) -> T:
        """Has a step done by the thread that does kernel work."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    @property
    def search(self) -> tuple[str, ...]:
        """Domains in which short names are looked up, as on this machine."""
        return self._names.search

    def given_back(self, network: RoutedNetwork) -> None:
        self._held.pop(network.address, None)

    async def _opened(self) -> Router:
        """Opened once, and to the end even if who asked for it gives up: half a router would be nobody's."""
        if self._opening is None or (self._opening.done() and self._router is None):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Router:
        closed = () if self._options.allow_private_network else PRIVATE
        closures = Closures(NEVER, closed, parse_networks(self._options.private_destinations))
        with _explained():
            router = await self.work(
                lambda: Router(ProcessStamp.of_this_process(self._install), closures, self._limits)
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
        self._following = asyncio.create_task(self._follow())
        return router

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._follow_sec)
            try:
                await self.sweep()
            except (SeatrialError, OSError, subprocess.SubprocessError) as error:
                _LOG.warning("The machine's network could not be looked at: %s", error)

    async def _new_line(self, router: Router) -> Line:
        making = asyncio.get_running_loop().run_in_executor(self._thread, router.new_line)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(lambda made: None if made.exception() else self._stock.append(made.result()))
            raise
        except OSError as error:
            raise SandboxFault(f"A sandbox's network could not be made: {error}") from error

    def _restock(self, router: Router) -> None:
        if len(self._stock) < _IN_STOCK and (self._stocking is None or self._stocking.done()):
            self._stocking = asyncio.create_task(self._fill_stock(router))

    async def _fill_stock(self, router: Router) -> None:
        try:
            while len(self._stock) < _IN_STOCK:
                self._stock.append(await self._new_line(router))
        except SandboxFault as error:  # whoever needs a line will hear of it
            _LOG.warning("No network could be made in advance: %s", error)


@contextmanager
def _explained() -> Iterator[None]:
    """What the kernel refused while the network was set up, as a problem of this machine."""
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
            f"The network for sandboxes could not be set up: {error}.",
            fix="Run: seatrial doctor",
        ) from error
