"""``seatrial gc`` and ``seatrial db``: maintenance of an installation."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_installation, read_settings
from seatrial.cli.options import DryRun
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.wiring import Installation

db = Commands(help="Upgrade, back up or restore the database.")


@on_installation
async def gc(
    installation: Installation,
    keep_days: Annotated[
        int, typer.Option(min=0, metavar="DAYS", help="Keep files of trials that ended within this time.")
    ] = 30,
    dry_run: DryRun = False,
) -> None:
    """Remove files of old trials, orphaned files, and leftovers of killed workers.

    Trials of dead workers are queued again, or end if they were cancelled. Then their sandboxes, work directories and
    firewall tables are removed. Results, scores and locks are always kept."""
    from seatrial.cli.view.figures import plural
    from seatrial.engine.trials.retention import Retention
    from seatrial.wiring import claim_blobs, clean_leftovers, clean_network, recover_lost

    await claim_blobs(installation)
    recovered = 0 if dry_run else await recover_lost(installation, _say_waiting)
    retention = Retention(installation.store, installation.blobs, installation.clock, installation.settings.work_dir)
    freed = await retention.apply(timedelta(days=keep_days), dry_run)
    leftovers = 0 if dry_run else await clean_leftovers(installation) + await clean_network()
    if not dry_run:
        await installation.library.forget_removed()
    verb = "would be removed" if dry_run else "removed"
    say(
        f"{plural(freed.files, 'file')} of {plural(freed.trials, 'trial')}, {plural(freed.orphans, 'orphaned file')}, "
        f"{freed.bytes / 1e6:.1f} MB, "
        f"{plural(freed.work_dirs, 'dead work folder')} {verb}; {plural(leftovers, 'sandbox leftover')} removed"
    )
    if recovered:
        say(f"{plural(recovered, 'trial')} of lost workers recovered")


def _say_waiting(trials: int, seconds: float) -> None:
    from seatrial.cli.view.figures import plural

    say(f"Workers of {plural(trials, 'trial')} do not respond. Waiting {seconds:g} s for these workers.", err=True)


@db.command()
@on_installation
async def upgrade(installation: Installation) -> None:
    """Upgrade the database to this version's schema. Opening an installation does this too."""
    say(f"The database is up to date (installation {installation.id}).")


@db.command()
@on_installation
async def backup(
    installation: Installation, target: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")]
) -> None:
    """Write a consistent copy of the database while the service runs."""
    from seatrial.wiring import backup_database

    await backup_database(installation.settings, target)
    say(f"{target}: {target.stat().st_size} bytes")


@db.command()
def restore(
    source: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, metavar="FILE", help="File written by `db backup`.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace the current database.")] = False,
) -> None:
    """Replace the database with a backup. The current database is kept beside it."""
    import asyncio

    from seatrial.wiring import restore_database

    kept = asyncio.run(restore_database(read_settings(), source, force))
    say("Restored." + (f" The former database is {kept}." if kept else ""))
