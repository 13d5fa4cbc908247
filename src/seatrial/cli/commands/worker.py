"""``seatrial worker``: runs queued trials of this installation until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.options import Concurrency
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.settings import Settings
    from seatrial.wiring import Installation, Place
    from seatrial.worker import Worker


def worker(
    concurrency: Concurrency = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep this many worker processes running, and replace a dead one. With auto they share the machine.",
        ),
    ] = None,
    leave_when_idle: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Leave after this time without a trial, such as 10m; 0 for never."),
    ] = None,
    minimum_workers: Annotated[int | None, typer.Option(min=0, help="Workers that stay even if they are idle.")] = None,
    supervised_by: Annotated[
        int | None, typer.Option(hidden=True, help="Parent process; the worker exits when it ends.")
    ] = None,
    suspects: Annotated[
        str | None, typer.Option(hidden=True, help="Only this group of suspected trials; the worker exits after it.")
    ] = None,
    works_with: Annotated[
        list[str] | None, typer.Option(hidden=True, help="With --suspects: a sandbox that works on this machine.")
    ] = None,
) -> None:
    """Run queued trials until interrupted. The first signal drains; a second one requeues running trials.

    A worker that left because it was idle exits with status 0.
    """
    import asyncio
    import os
    from dataclasses import replace

    from seatrial.cli.backend.session import read_settings
    from seatrial.system.processes import die_with

    if supervised_by is not None and not die_with(supervised_by):
        raise typer.Exit

    capacity = read_settings().concurrency if concurrency is None else concurrency
    if processes is not None:
        _keep_running(processes, capacity, _rules_of_stay(read_settings(), leave_when_idle, minimum_workers))
        return

    from seatrial.wiring import Place

    # A supervised worker stays unless it is told otherwise: its supervisor might start another one.
    stays = "0" if leave_when_idle is None and supervised_by is not None else leave_when_idle
    place = Place(supervised_by, dict(os.environ))  # a worker removes from its own what tasks may not read
    if suspects is not None:
        place = replace(place, group=suspects, sandboxes=tuple(works_with or ()))
    left = asyncio.run(_open_and_work(_rules_of_stay(read_settings(), stays, minimum_workers), capacity, place))
    if left and supervised_by is not None and suspects is None:
        from seatrial.worker_supervisor import LEFT_BY_ITSELF

        raise typer.Exit(LEFT_BY_ITSELF)


def _keep_running(processes: int, capacity: int, settings: Settings) -> None:
    """This process runs no trial, so it outlives every worker and sees how each of them ends."""
    import asyncio

    from seatrial.worker_exits import ExitNotes
    from seatrial.worker_supervisor import keep_workers, worker_command

    stays = [
        "--leave-when-idle",
        f"{settings.leave_when_idle_sec}s",
        "--minimum-workers",
        str(settings.minimum_workers),
    ]
    command = worker_command(capacity, *stays)
    asyncio.run(keep_workers(command, processes, ExitNotes.beside(settings.work_dir)))


def _rules_of_stay(settings: Settings, leave_when_idle: str | None, minimum_workers: int | None) -> Settings:
    """The options win over the settings."""
    given: dict[str, object] = {}
    if leave_when_idle is not None:
        given["leave_when_idle_sec"] = _seconds(leave_when_idle)
    if minimum_workers is not None:
        given["minimum_workers"] = minimum_workers
    return settings.model_copy(update=given)


def _seconds(text: str) -> float:
    """``90s``, ``10m``, ``2h``, or seconds without a unit."""
    import re

    from seatrial.errors import InvalidInput

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not found:
        raise InvalidInput(f"{text!r} is no time.", field="leave_when_idle", fix="Write 90s, 10m or 2h.")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


async def _open_and_work(settings: Settings, capacity: int, place: Place) -> bool:
    from seatrial.logs import write_logs
    from seatrial.system.privileges import confine_worker
    from seatrial.wiring import open_installation

    confine_worker(settings.allow_privileged)  # before there are threads, which would keep what they have
    async with open_installation(settings, for_worker=True) as installation:
        write_logs(settings)
        return await _work(installation, capacity, place)


async def _work(installation: Installation, capacity: int, place: Place) -> bool:
    """Whether the worker left by itself, because it was idle or its machine must go."""
    import asyncio
    import contextlib
    import os

    from seatrial.sizing import packing_here
    from seatrial.system.processes import on_signals
    from seatrial.wiring import leave_machine, load_worker, machine_of

    worker: Worker | None = None
    machine = await machine_of(installation.settings)
    duty: asyncio.Task[Any] = asyncio.create_task(load_worker(installation, capacity, place, machine))

    def stop() -> None:
        if worker is None or worker.leaving:
            duty.cancel()
        else:
            worker.drain()

    with on_signals(stop), contextlib.suppress(asyncio.CancelledError):
        try:
            worker = await duty
        except asyncio.CancelledError:
            # The worker holds nothing yet. A thread that imports cannot be stopped and would delay the exit by seconds.
            os._exit(0)
        room = f"up to {capacity} trials" if capacity else f"what fits into {packing_here(installation.settings).size}"
        say(f"Worker ready: {room} at once. Interrupt to drain and stop.", err=True)
        duty = asyncio.create_task(worker.run())
        examining = asyncio.create_task(_tell_what_works(installation, worker)) if place.group is None else None
        try:
            await duty
        finally:
            if examining is not None:
                examining.cancel()
        await leave_machine(installation.settings, machine, idle=worker.left_idle, noticed=worker.was_noticed)
    return worker is not None and (worker.left_idle or worker.was_noticed)


async def _tell_what_works(installation: Installation, worker: Worker) -> None:
    """Takes seconds, because it tries every sandbox. Until then the worker claims trials that name none."""
    from seatrial.wiring import examine_sandboxes

    async def working() -> list[str]:
        health = await examine_sandboxes(installation.settings)
        return [kind.name for kind in health.kinds if kind.works]

    await worker.find_sandboxes(working)
