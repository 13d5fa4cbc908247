"""Removes sandboxes of rollouts that nobody will close: those of dead processes and, at exit, our own.

They carry our label but no trial, so a worker's clean-up ignores them while this process lives.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from seatrial.processes import ProcessIdentity
from seatrial.removal import remove_tree
from seatrial.sandboxes.docker.leftovers import Leftovers as DockerLeftovers
from seatrial.sandboxes.oci.leftovers import Leftovers as OciLeftovers
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.record import Abandoned, SandboxRecord
from seatrial.sandboxes.selection import engine_listens
from seatrial.sandboxes.sweep import sweep


async def remove_stray(options: SandboxOptions) -> int:
    """Removes sandboxes whose process is gone."""

    async def none_leased() -> set[tuple[int, int]]:
        return set()

    return await sweep(options, "rollouts", none_leased)


def remove_own(options: SandboxOptions, owner: Owner, work_dir: Path) -> None:
    """Removes sandboxes of this process. Blocking, and without threads: the interpreter may be exiting."""
    me = ProcessIdentity.mine()

    def mine(record: SandboxRecord) -> bool:
        return record.owner == owner and record.process == me

    if any(mine(record) for record in OciLeftovers(options.run_dir).sandboxes()):
        OciLeftovers(options.run_dir).remove(mine)
    if engine_listens(options.docker_host):
        with suppress(Exception):  # the engine is gone; the next process removes what is left
            asyncio.run(_sweep_engine(options, mine))
    remove_files(work_dir)


def remove_files(work_dir: Path) -> None:
    """Removes the folder of a host, and the folder of its process if it is empty."""
    remove_tree(work_dir)
    with suppress(OSError):
        work_dir.parent.rmdir()


async def _sweep_engine(options: SandboxOptions, mine: Abandoned) -> None:
    async with DockerLeftovers.at(options.docker_host) as docker:
        if any(mine(container.record) for container in await docker.containers()):
            await docker.sweep(mine)
