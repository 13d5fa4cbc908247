"""The networks of a process, one set for each event loop that starts sandboxes, closed when that loop ends."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions


class SharedNetworks:
    """Harbor constructs each sandbox separately. Here all sandboxes of one event loop find the set that they share."""

    def __init__(self) -> None:
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, SandboxNetworks]] = WeakKeyDictionary()
        self._keepers: set[asyncio.Task[None]] = set()

    def of(self, options: SandboxOptions, install: str) -> SandboxNetworks:
        loop = asyncio.get_running_loop()
        known = self._open.setdefault(loop, {})
        key = f"{install} {options.model_dump_json()}"
        if key not in known:
            known[key] = SandboxNetworks(options, install=install)
            keeper = loop.create_task(_keep(known, key))
            self._keepers.add(keeper)
            keeper.add_done_callback(self._keepers.discard)
        return known[key]


async def _keep(known: dict[str, SandboxNetworks], key: str) -> None:
    """Waits for the end of the loop, which cancels every task and waits for it."""
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await known.pop(key).close()
