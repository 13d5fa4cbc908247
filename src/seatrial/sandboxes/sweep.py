"""Removes unused sandboxes of both kinds. Workers and ``seatrial gc`` call it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from seatrial.errors import SeatrialError
from seatrial.sandboxes.docker.leftovers import FoundContainer
from seatrial.sandboxes.docker.leftovers import Leftovers as DockerLeftovers
from seatrial.sandboxes.oci.leftovers import Leftovers as OciLeftovers
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.selection import engine_answers

Leases = Callable[[], Awaitable[set[tuple[int, int]]]]
"""The tries, as (trial, try), that hold a valid lease right now."""

_log = logging.getLogger(__name__)


async def sweep(options: SandboxOptions, install: str, leases: Leases) -> int:
    """Removes sandboxes whose process is gone, and those of this installation whose try holds no lease. Returns
    how many. A container engine that fails meanwhile is logged, and its containers are left for the next sweep.

    Sandboxes are listed *before* the leases are read. A sandbox is made only after its try was claimed, so one
    that was listed and has no lease now is not wanted any more."""
    oci = OciLeftovers(options.run_dir)
    async with AsyncExitStack() as stack:
        seen = {record.sandbox for record in await asyncio.to_thread(oci.sandboxes)}
        containers: list[FoundContainer] | None = None
        if await engine_answers(options.docker_host):
            docker = await stack.enter_async_context(DockerLeftovers.at(options.docker_host))
            containers = await _or_none(docker.containers(), "listed")
            seen |= {container.record.sandbox for container in containers or ()}
        if not seen:
            return 0
        leased = await leases()

        def abandoned(record: SandboxRecord) -> bool:
            owner = record.owner
            ours = record.sandbox in seen and owner.install == install and owner.trial is not None
            return ours and (owner.trial, owner.try_number) not in leased

        removed = len(await asyncio.to_thread(oci.remove, abandoned))
        swept = await _or_none(docker.sweep(abandoned), "removed") if containers is not None else None
        return removed + len(swept or ())


async def _or_none[T](call: Awaitable[T], failure: str) -> T | None:
    """A failing engine is only logged: its containers are left for the next sweep."""
    try:
        return await call
    except (SeatrialError, OSError, ValueError) as error:
        _log.warning("The containers of sandboxes could not be %s: %s", failure, error)
        return None
