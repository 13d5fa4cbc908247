"""``seatrial leaderboard``: configurations × datasets over all jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend


@on_backend
async def leaderboard(
    backend: Backend,
    dataset: Annotated[
        str | None, typer.Option("-d", "--dataset", help="Only this dataset, as NAME or NAME@VERSION.")
    ] = None,
    agent: Annotated[str | None, typer.Option("-a", "--agent", help="Only this agent.")] = None,
    model: Annotated[str | None, typer.Option("-m", "--model", help="Only this model.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(metavar="DATE", help="Only jobs created then or later, such as 2026-11-01; in UTC."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rank every configuration on every dataset it ran. Eligible ones come first; others say why they are not.

    The newest eligible job represents a configuration; jobs are never pooled.
    """
    from seatrial.engine.reports.leaderboard import LeaderboardFilter

    chosen = LeaderboardFilter(dataset=dataset, agent=agent, model=model, since=since)
    found = await backend.jobs.leaderboard(chosen)
    if as_json:
        print_json(found)
        return
    from seatrial.cli.view.figures import open_console
    from seatrial.cli.view.leaderboard import print_leaderboard

    print_leaderboard(open_console(), found)
