"""``seatrial worker``: runs queued trials of this installation until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.options import Concurrency
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.wiring import Installation, Place
    from seatrial.worker import Worker


def worker(
    concurrency: Concurrency = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Keep this many worker processes running; replace a dead one, and note how it died."),
    ] = None,
    supervised_by: Annotated[
        int | None, typer.Option(hidden=True, help="Parent process; the worker exits when it ends.")
    ] = None,
    suspects: Annotated[
        str | None, typer.Option(hidden=True, help="Only this group of suspected trials; the worker exits after it.")
    ] = None,
) -> None:
    """Run queued trials until interrupted. The first signal drains; a second one requeues running trials."""
    import asyncio
    import os

    from seatrial.cli.backend.session import read_settings
    from seatrial.processes import die_with

    if supervised_by is not None and not die_with(supervised_by):
        raise typer.Exit

    if processes is not None:
        _keep(processes, concurrency)
        return

    async def work() -> None:
        from seatrial.logs import write_logs
        from seatrial.privileges import confine_worker
        from seatrial.wiring import Place, open_installation

        environment = dict(os.environ)  # a worker removes from its own what tasks may not read
        settings = read_settings()
        confine_worker(settings.allow_privileged)  # before there are threads, which would keep what they have
        async with open_installation(settings, for_worker=True) as installation:
            write_logs(settings)
            capacity = concurrency or settings.worker_concurrency
            await _work(installation, capacity, Place(supervised_by, environment, suspects))

    asyncio.run(work())


def _keep(processes: int, concurrency: int | None) -> None:
    """This process runs no trial, so it outlives every worker and sees how each of them ends."""
    import asyncio

    from seatrial.cli.backend.session import read_settings
    from seatrial.worker_exits import ExitNotes
    from seatrial.worker_supervisor import keep_workers, worker_command

    settings = read_settings()
    command = worker_command(concurrency or settings.worker_concurrency)
    asyncio.run(keep_workers(command, processes, ExitNotes.beside(settings.work_dir)))


async def _work(installation: Installation, capacity: int, place: Place) -> None:
    import asyncio
    import contextlib
    import os

    from seatrial.processes import on_signals
    from seatrial.wiring import load_worker

    worker: Worker | None = None
    duty: asyncio.Task[Any] = asyncio.create_task(load_worker(installation, capacity, place))

    def stop() -> None:
        if worker is None or worker.leaving:
            duty.cancel()
        else:
            worker.leave()

    with on_signals(stop), contextlib.suppress(asyncio.CancelledError):
        try:
            worker = await duty
        except asyncio.CancelledError:
            # The worker holds nothing yet. A thread that imports cannot be stopped and would delay the exit by seconds.
            os._exit(0)
        say(f"Worker ready: up to {capacity} trials at once. Interrupt to drain and stop.", err=True)
        duty = asyncio.create_task(worker.run())
        examining = asyncio.create_task(_tell_what_works(installation, worker)) if place.group is None else None
        try:
            await duty
        finally:
            if examining is not None:
                examining.cancel()


async def _tell_what_works(installation: Installation, worker: Worker) -> None:
    """Runs beside the first trials, because it tries every sandbox."""
    from seatrial.engine.duties import Duties
    from seatrial.wiring import examine_sandboxes

    settings = installation.settings
    health = await Duties(installation.clock).once("sandbox checks", lambda: examine_sandboxes(settings))
    worker.can_use([kind.name for kind in health.kinds if kind.works] if health else ())
