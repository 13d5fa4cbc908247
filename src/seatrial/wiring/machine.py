"""The machine that workers share: the platform that may end it, and how it is left."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from datetime import timedelta

from seatrial.adapters.platform_shared import MachineLock, SharedProtection
from seatrial.engine.fleet.departure import depart
from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.errors import SetupProblem
from seatrial.ports.platform import Departure, Notices, ScaleInProtection
from seatrial.settings import Settings, tool_environment
from seatrial.system.processes import WorkerName
from seatrial.wiring.installation import Installation


@dataclass(frozen=True)
class Machine:
    """This machine, as the platform that it belongs to sees it. All of its worker processes share it."""

    alive: MachineLock
    stays: StayRules
    protection: ScaleInProtection | None = None
    notices: Notices | None = None
    departure: Departure | None = None


async def machine_of(settings: Settings) -> Machine:
    """Call it before ``load_worker``, which removes variables from the environment that AWS tools look for."""
    folder = settings.cache / "machine"
    stays = StayRules(settings.leave_when_idle_sec, settings.minimum_workers, timedelta(seconds=settings.lease_sec))
    alive, busy = MachineLock(folder / "alive"), MachineLock(folder / "busy")
    await alive.share()
    if settings.platform == "ec2":
        from seatrial.adapters.platform_ec2 import Ec2Group, Ec2Notices, InstanceMetadata

        metadata = InstanceMetadata(settings.ec2_metadata_url)
        group = await Ec2Group.of_this_instance(metadata, settings.ec2_lifecycle_hook)
        return Machine(alive, stays, SharedProtection(group, busy), Ec2Notices(metadata), group)
    if settings.platform == "ecs":
        from seatrial.adapters.platform_ecs import EcsTask

        if not settings.ecs_agent_uri:
            raise SetupProblem("SEATRIAL_PLATFORM is ecs, and ECS_AGENT_URI is not set.", fix="Run it in an ECS task.")
        return Machine(alive, stays, SharedProtection(EcsTask(settings.ecs_agent_uri), busy))
    return Machine(alive, stays)


def tenure_of(installation: Installation, machine: Machine) -> Tenure:
    return Tenure(
        str(WorkerName.mine()),
        installation.store,
        installation.clock,
        machine.stays,
        machine.protection,
        machine.notices,
    )


async def leave_machine(settings: Settings, machine: Machine, *, idle: bool, noticed: bool) -> None:
    """After a worker has left. Only the last worker process of a machine ends it."""
    if not machine.alive.leave_and_take_alone() or not (idle or noticed):
        return
    if machine.departure is not None:
        await depart(machine.departure, idle=idle, noticed=noticed)
    if idle and settings.on_leave:
        command = shlex.split(settings.on_leave)
        process = await asyncio.create_subprocess_exec(*command, env=tool_environment())
        if status := await process.wait():
            raise SetupProblem(f"SEATRIAL_ON_LEAVE ended with status {status}: {settings.on_leave}")
