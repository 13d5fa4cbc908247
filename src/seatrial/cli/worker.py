"""``seatrial worker``: works on whatever is queued in this installation until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seatrial.wiring import Installation


def worker(
    concurrency: Annotated[
        int | None, typer.Option("-n", "--n-concurrent", "--concurrency", min=1, help="Trials at the same time.")
    ] = None,
) -> None:
    """Run queued trials until interrupted. The first signal drains, a second one gives trials in flight back."""
    from seatrial.cli.session import with_session

    async def work(session: Installation) -> None:
        import asyncio
        import contextlib
        import logging
        import signal

        from seatrial.wiring import make_worker

        logging.basicConfig(level=session.settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
        capacity = concurrency or session.settings.worker_concurrency
        crew = make_worker(session, capacity)
        working = asyncio.create_task(crew.run())

        def told() -> None:
            if crew.leaving:
                working.cancel()
            crew.leave()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, told)
        typer.echo(f"Worker ready: up to {capacity} trials at once. Interrupt to drain and stop.", err=True)
        with contextlib.suppress(asyncio.CancelledError):
            await working

    with_session(work)
