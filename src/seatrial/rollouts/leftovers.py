"""Removes sandboxes of rollouts that nobody will close: those of dead processes, and at the very end our own.

They carry a label like every sandbox of ours, but no trial: a worker's clean-up leaves them alone while we live.
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
    """Sandboxes whose process is gone."""

    async def none_leased() -> set[tuple[int, int]]:
        return set()

    return await sweep(options, "rollouts", none_leased)


def remove_own(options: SandboxOptions, owner: Owner, work_dir: Path) -> None:
    """What this process still has. Blocking, and needs no thread: the interpreter may be ending."""
    me = ProcessIdentity.mine()

    def mine(record: SandboxRecord) -> bool:
        return record.owner == owner and record.process == me

    if any(mine(record) for record in OciLeftovers(options.run_dir).sandboxes()):
        OciLeftovers(options.run_dir).remove(mine)
    if engine_listens(options.docker_host):
        with suppress(Exception):  # the engine went away; whoever comes next finds what is left
            asyncio.run(_sweep_engine(options, mine))
    remove_files(work_dir)


def remove_files(work_dir: Path) -> None:
    """The folder of a room, and that of its process if it was the last in it."""
    remove_tree(work_dir)
    with suppress(OSError):
        work_dir.parent.rmdir()


async def _sweep_engine(options: SandboxOptions, mine: Abandoned) -> None:
    async with DockerLeftovers.at(options.docker_host) as docker:
        if any(mine(container.record) for container in await docker.containers()):
            await docker.sweep(mine)
