"""``seatrial doctor``: which sandboxes work on this machine, and how to fix those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from seatrial.cli.options import AsJson
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.settings import Settings


async def _database(settings: Settings) -> str:
    """The connections of the database and those that Seatrial opens, or the error."""
    from seatrial.errors import SeatrialError
    from seatrial.wiring import open_installation

    api, worker = settings.database_connections, settings.worker_database_connections
    wanted = f"The API opens up to {api}, each worker process up to {worker}."
    try:
        async with open_installation(settings) as installation:
            return f"{(await installation.store.facts()).sentence} {wanted}"
    except SeatrialError as error:
        return str(error)


async def _files(settings: Settings) -> str:
    """Whether files can be kept where the settings say, or the error."""
    from secrets import token_hex

    from seatrial.errors import SeatrialError
    from seatrial.wiring import claim_blobs, open_installation

    probe = f"ready/doctor-{token_hex(8)}"
    try:
        async with open_installation(settings) as installation:
            await claim_blobs(installation)
            await installation.blobs.put_bytes(probe, b"written")
            read = await installation.blobs.read(probe)
            await installation.blobs.delete(probe)
    except SeatrialError as error:
        return str(error)
    return f"{settings.files_url} works" if read == b"written" else f"{settings.files_url} returns other content"


def _privileges(settings: Settings) -> list[str]:
    """What the processes of `seatrial up` drop, if this user starts it."""
    import os

    from seatrial.api_account import look
    from seatrial.errors import SetupProblem
    from seatrial.system.privileges import findings

    try:
        account, why = look(settings)
    except SetupProblem as problem:
        return [*findings("none"), f"`seatrial up` does not start: {problem}"]
    lines = findings(f"user {account.uid if account else os.geteuid()}")
    if why:
        lines.append(f"could be dropped further: the API keeps the user id of root. {why}")
    return lines


def doctor(as_json: AsJson = False) -> None:
    """Check this machine. The exit status is 1 if no sandbox works."""
    import asyncio

    from seatrial.cli.backend.session import print_json, read_settings
    from seatrial.wiring import examine_sandboxes

    settings = read_settings()
    health = asyncio.run(examine_sandboxes(settings))
    if as_json:
        print_json(health)
    else:
        for room in health.kinds:
            say(f"{room.name}: {'works' if room.works else 'does not work here'}")
            for finding in room.findings:
                sign = "ok  " if finding.ok else "no  "
                say(f"  {sign} {finding.name}  {finding.detail}")
                if finding.fix and not finding.ok:
                    say(f"        fix: {finding.fix}")
        say("privileges:")
        for line in _privileges(settings):
            say(f"  {line}")
        if settings.database_url:
            say(f"database: {asyncio.run(_database(settings))}")
        if settings.files_url:
            say(f"files: {asyncio.run(_files(settings))}")
        say(f"--sandbox auto means: {health.automatic or 'none, because no sandbox works; see the fixes above'}")
    raise typer.Exit(0 if health.automatic else 1)
