"""The command line: the index of all commands. Commands parse, call the engine and print.

Heavy imports (the engine, the store, Harbor) happen inside the commands, so that ``--help`` is fast.
"""

from __future__ import annotations

import sys

import typer

from seatrial import __version__
from seatrial.cli.backend.session import NAMED_SERVER, refuse_server
from seatrial.cli.commands import (
    agents,
    catalogue,
    dataset,
    doctor,
    export,
    fleet,
    images,
    job,
    leaderboard,
    maintenance,
    report,
    run,
    static,
    task,
    token,
    triage,
    trial,
    up,
    worker,
)
from seatrial.cli.plain_help import Commands, PlainGroup
from seatrial.cli.view.say import say
from seatrial.errors import InvalidInput, NotFound, SeatrialError


class _Seatrial(PlainGroup):
    sections = (
        ("Run and read", ("run", "job", "trial", "report", "compare", "leaderboard", "export", "link")),
        ("What can be run", ("task", "dataset", "agents", "models", "images")),
        ("Service", ("up", "worker", "fleet", "token")),
        ("This machine", ("doctor", "gc", "db")),
    )


app = Commands(
    name="seatrial",
    help="Run Terminal-Bench tasks. Each attempt has its own sandbox and is graded by the task's own tests.",
    cls=_Seatrial,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_ON_THIS_MACHINE = ("images", "doctor", "up", "worker", "gc", "db", "token")
"""Commands for this machine and its installation; they refuse ``--server``."""


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _seatrial(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
    server: str | None = typer.Option(
        None, metavar="URL", help="Run the command on the service at this address [SEATRIAL_SERVER]."
    ),
) -> None:
    NAMED_SERVER.set(server)
    if context.invoked_subcommand in _ON_THIS_MACHINE:
        refuse_server(context.invoked_subcommand)


app.command("run")(run.run)
app.command("report")(report.report)
app.command("compare")(report.compare)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("export")(export.export)
app.add_typer(task.app, name="task")
app.add_typer(dataset.app, name="dataset")
app.add_typer(job.app, name="job")
app.add_typer(trial.app, name="trial")
trial.app.command("note")(triage.note)
trial.app.command("tag")(triage.tag)
trial.app.command("review")(triage.review)
trial.app.command("share")(triage.share_trial)
trial.app.command("export")(static.export_trial)
job.app.command("rename")(triage.rename)
job.app.command("pin")(triage.pin)
job.app.command("share")(triage.share_job)
job.app.command("export")(static.export_job)
app.add_typer(triage.links, name="link")
app.add_typer(images.app, name="images")
app.add_typer(agents.app, name="agents")
app.command("models")(catalogue.models)
app.command("doctor")(doctor.doctor)
app.command("up")(up.up)
app.command("worker")(worker.worker)
app.command("fleet")(fleet.fleet)
app.command("gc")(maintenance.gc)
app.add_typer(maintenance.db, name="db")
app.add_typer(token.app, name="token")


def main() -> None:
    """Entry point. Prints Seatrial's errors as one sentence with an exit status, never as a traceback."""
    try:
        app()
    except (InvalidInput, NotFound) as error:
        say(f"seatrial: {error}", err=True)
        sys.exit(2)
    except SeatrialError as error:
        say(f"seatrial: {error}", err=True)
        sys.exit(1)
