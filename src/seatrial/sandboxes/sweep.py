"""Removes what sandboxes left behind, of both kinds, by label and lease. Called by workers and by ``seatrial gc``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from seatrial.sandboxes.docker.leftovers import Leftovers as DockerLeftovers
from seatrial.sandboxes.oci.leftovers import Leftovers as OciLeftovers
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.selection import engine_answers

Leases = Callable[[], Awaitable[set[tuple[int, int]]]]
"""The attempts, as (trial, attempt), that hold a valid lease right now."""


async def sweep(options: SandboxOptions, install: str, leases: Leases) -> int:
    """Sandboxes whose process is gone, and those of this installation whose attempt holds no lease; says how many.

    They are listed *before* the leases are read: a sandbox is made only after its attempt was claimed, so whatever was
    there already and has no lease now is not wanted any more."""
    oci = OciLeftovers(options.run_dir)
    async with AsyncExitStack() as stack:
        docker: DockerLeftovers | None = None
        if await engine_answers(options.docker_host):
            docker = await stack.enter_async_context(DockerLeftovers.at(options.docker_host))
        seen = {record.sandbox for record in await asyncio.to_thread(oci.sandboxes)}
        if docker is not None:
            seen |= {container.record.sandbox for container in await docker.containers()}
        if not seen:
            return 0
        leased = await leases()

        def abandoned(record: SandboxRecord) -> bool:
            owner = record.owner
            ours = record.sandbox in seen and owner.install == install and owner.trial is not None
            return ours and (owner.trial, owner.attempt) not in leased

        removed = len(await asyncio.to_thread(oci.remove, abandoned))
        return removed + (len(await docker.sweep(abandoned)) if docker is not None else 0)
