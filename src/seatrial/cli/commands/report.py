"""``seatrial report`` and ``seatrial compare``: scores of a job, and differences between jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, JobId
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.domain.job import Job
    from seatrial.domain.reports.fact import Basis
    from seatrial.domain.reports.report import JobReport
    from seatrial.engine.reports.circumstances import ComparedCircumstances
    from seatrial.engine.reports.comparing import Compared


@on_backend
async def report(
    backend: Backend,
    job_id: JobId,
    tests: Annotated[bool, typer.Option("--tests", help="Also show every test.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table, for a pull request.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report with its pictures as one HTML file.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every picture as an SVG file into this directory.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a job's scores with their uncertainty, errors, costs and durations. Also works while the job runs."""
    job, found = await backend.jobs.report(job_id, tests)
    if html or svg:
        from seatrial.cli.view.pictures import write_pictures

        written = await asyncio.to_thread(write_pictures, job, found, await backend.jobs.trend(job_id), html, svg)
        if not as_json and not markdown:
            say("\n".join(f"Wrote {path}." for path in written))
            return
    if as_json:
        print_json(report_json(job, found))
        return
    if markdown:
        from seatrial.cli.view.markdown import report_lines

        say("\n".join(report_lines(job, found)))
        return
    from seatrial.cli.view.details import print_report
    from seatrial.cli.view.figures import open_console

    print_report(open_console(), job, found)


@on_backend
async def compare(
    backend: Backend,
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB[:CONFIGURATION]",
            help=(
                "A, then B, and optionally more to compare with A. CONFIGURATION is a part of agent / model. A "
                "single job compares its first configuration with its others."
            ),
        ),
    ],
    basis: Annotated[
        str, typer.Option(help="valid: leave out infrastructure errors. leaderboard: count every error as 0.")
    ] = "valid",
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Compare tasks with the same name even if their content differs.")
    ] = False,
    every_pair: Annotated[
        bool, typer.Option("--every-pair", help="With a single job: compare every pair of configurations.")
    ] = False,
    every_task: Annotated[bool, typer.Option("--all", help="Also list tasks without a difference.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare A with B on their common tasks: the difference, its confidence, the smallest detectable one, cost and
    time, and what else differs."""
    from seatrial.engine.reports.comparing import ComparisonWish

    wish = ComparisonWish(sides=tuple(sides), basis=_basis(basis), by_name=by_name, every_pair=every_pair)
    compared, circumstances = await backend.jobs.compare(wish), await backend.jobs.circumstances(wish)
    if as_json:
        print_json(comparisons_json(compared, circumstances))
        return
    from seatrial.cli.view.comparison_tables import print_circumstances, print_comparisons
    from seatrial.cli.view.figures import open_console

    console = open_console()
    print_comparisons(console, compared.items, every_task)
    print_circumstances(console, circumstances)


def report_json(job: Job, found: JobReport) -> dict[str, object]:
    return {"job": job.id, "name": job.title, **found.model_dump(mode="json")}


def comparisons_json(compared: Compared, circumstances: ComparedCircumstances) -> dict[str, object]:
    from seatrial.domain.comparisons.verdict import verdict

    return {
        "comparisons": [{"verdict": verdict(each), **each.model_dump(mode="json")} for each in compared.items],
        "matrix": [row.model_dump(mode="json") for row in compared.matrix],
        "circumstances": circumstances.model_dump(mode="json"),
    }


def _basis(name: str) -> Basis:
    from seatrial.domain.reports.fact import Basis
    from seatrial.errors import InvalidInput

    try:
        return Basis(name)
    except ValueError as error:
        raise InvalidInput(f"--basis {name!r} is not one of: {', '.join(Basis)}.", field="basis") from error
