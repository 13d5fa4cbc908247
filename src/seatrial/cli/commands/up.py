"""``seatrial up``: starts the service on one machine. It needs no other software."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.options import Concurrency
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.settings import Settings


def up(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on [SEATRIAL_HOST, 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one [SEATRIAL_PORT, 8000]."),
    ] = None,
    next_port: Annotated[
        bool, typer.Option("--next-port", help="Use the next free port if the port is taken.")
    ] = False,
    keep_alive: Annotated[
        int | None,
        typer.Option(
            "--timeout-keep-alive", min=1, metavar="SECONDS", help="Seconds that an idle connection stays open."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of worker processes; 0 runs the API alone.")] = 1,
    concurrency: Concurrency = None,
) -> None:
    """Start the API and its workers. The first interrupt drains; a second one requeues running trials."""
    import gc

    gc.disable()  # excluding loaded objects from garbage collection saves an eighth of the start
    from seatrial.api.serve import address_of, listen
    from seatrial.cli.backend.session import read_settings
    from seatrial.logs import write_logs
    from seatrial.service import run_service

    given = {"host": host, "port": port, "keep_alive_sec": keep_alive}
    settings = read_settings().model_copy(update={name: value for name, value in given.items() if value is not None})
    redactor = write_logs(settings)
    listener = listen(settings.host, settings.port, next_port=next_port)
    settings = settings.model_copy(update={"port": listener.getsockname()[1]})
    each = settings.concurrency if concurrency is None else concurrency

    def started() -> None:
        gc.freeze()
        gc.enable()
        _greet(settings, address_of(listener), workers, each)

    run_service(settings, redactor, listener, workers, each, started)


def _greet(settings: Settings, address: str, workers: int, each: int) -> None:
    from seatrial import __version__
    from seatrial.sizing import packing_here

    job = '{"tasks": ["answer-file"], "agents": [{"name": "oracle"}]}'
    room = f"up to {each} trials at once" if each else f"as many trials as fit into {packing_here(settings).size}"
    summary = f"{workers}, with {room}" if not each else f"{workers}, each with {room}"
    summary = summary if workers else "none; start one with `seatrial worker`"
    say(f"Seatrial {__version__} is up: {address}")
    say(f"  data           {settings.home}" + (" and PostgreSQL" if settings.database_url else ""))
    say(f"  workers        {summary}")
    say(f"  the API        {address}/docs")
    say(f"  first result   curl -X POST {address}/api/v1/samples")
    say(f"                 curl {address}/api/v1/jobs --json '{job}'")
    say("Interrupt to drain and stop.")
