"""How much a worker holds, from the settings and the machine. ``wiring`` and the commands use it."""

from __future__ import annotations

from seatrial.domain.fleet.packing import Overcommit, Packing, Size
from seatrial.settings import Settings
from seatrial.system.machine import Hardware


def room_here(settings: Settings) -> Packing:
    """The room of a worker with ``concurrency=auto`` on this machine."""
    machine = Hardware()
    return _room(settings, Size(memory_mb=machine.memory_mb, cpus=machine.cpus))


def largest_room(settings: Settings) -> Packing | None:
    """The room of a worker on the largest machine that there may be, if that is known."""
    return _room(settings, Size.parse(settings.largest_machine)) if settings.largest_machine else None


def usual_concurrency(settings: Settings) -> int:
    """Trials at once of one worker process. For ``auto``: how many fit that declare nothing."""
    return settings.concurrency or room_here(settings).usual_count


def overcommit_of(settings: Settings) -> Overcommit:
    return Overcommit(memory=settings.memory_overcommit, cpus=settings.cpu_overcommit)


def _room(settings: Settings, machine: Size) -> Packing:
    return Packing(
        size=overcommit_of(settings).room(machine),
        usual=Size(memory_mb=settings.default_memory_mb, cpus=settings.default_cpus),
    )
