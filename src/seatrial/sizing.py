"""How much a worker holds, from the settings and the machine. ``wiring`` and the commands use it."""

from __future__ import annotations

from seatrial.domain.fleet.packing import Overcommit, Packing, Size
from seatrial.settings import Settings
from seatrial.system.machine import Hardware


def packing_here(settings: Settings) -> Packing:
    """What fits into a worker with ``concurrency=auto`` on this machine."""
    machine = Hardware()
    return _packing(settings, Size(memory_mb=machine.memory_mb, cpus=machine.cpus))


def largest_packing(settings: Settings) -> Packing | None:
    """What fits into a worker on the largest machine that there may be, if that is known."""
    return _packing(settings, Size.parse(settings.largest_machine)) if settings.largest_machine else None


def usual_concurrency(settings: Settings) -> int:
    """Trials at once of one worker process. For ``auto``: how many fit that declare nothing."""
    return settings.concurrency or packing_here(settings).usual_count


def overcommit_of(settings: Settings) -> Overcommit:
    return Overcommit(memory=settings.memory_overcommit, cpus=settings.cpu_overcommit)


def _packing(settings: Settings, machine: Size) -> Packing:
    return Packing(
        size=overcommit_of(settings).usable(machine),
        usual=Size(memory_mb=settings.default_memory_mb, cpus=settings.default_cpus),
    )
