"""``seatrial doctor``: which sandboxes work on this machine, and how to fix those that do not."""

from __future__ import annotations

import typer

from seatrial.cli.options import AsJson


def doctor(as_json: AsJson = False) -> None:
    """Check this machine. The exit status is 1 if no sandbox works."""
    import asyncio

    from seatrial.cli.backend.session import print_json, read_settings
    from seatrial.privileges import findings
    from seatrial.wiring import examine_sandboxes

    health = asyncio.run(examine_sandboxes(read_settings()))
    if as_json:
        print_json(health)
    else:
        for room in health.rooms:
            typer.echo(f"{room.name}: {'works' if room.works else 'does not work here'}")
            for finding in room.findings:
                sign = "ok  " if finding.ok else "no  "
                typer.echo(f"  {sign} {finding.name}  {finding.detail}")
                if finding.fix and not finding.ok:
                    typer.echo(f"        fix: {finding.fix}")
        typer.echo("privileges:")
        for line in findings():
            typer.echo(f"  {line}")
        typer.echo(f"--sandbox auto means: {health.automatic or 'none of them works; see the fixes above'}")
    raise typer.Exit(0 if health.automatic else 1)
