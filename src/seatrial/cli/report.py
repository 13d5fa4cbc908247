"""``seatrial report`` and ``seatrial compare``: what a job's trials say, and which of two did better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.session import print_json, with_session

if TYPE_CHECKING:
    from seatrial.domain.comparison import Comparison, Side
    from seatrial.domain.fact import Basis
    from seatrial.domain.job import Job
    from seatrial.domain.report import JobReport
    from seatrial.ports.store import Store
    from seatrial.wiring import Installation

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def report(
    job_id: Annotated[int, typer.Argument(metavar="JOB", help="A job's number.")],
    tests: Annotated[bool, typer.Option("--tests", help="Test by test, too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a job's scores with their uncertainty, errors, costs and durations. A job that still runs has one too."""

    async def work(session: Installation) -> None:
        from seatrial.engine.reporting import report_job

        job = await session.store.job(job_id)
        found = await report_job(session.store, job, with_tests=tests)
        if as_json:
            print_json(report_json(job, found))
            return
        from seatrial.cli.details import print_report
        from seatrial.cli.figures import open_console

        print_report(open_console(), job, found)

    with_session(work)


def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB[:CONFIGURATION]",
            help="A, then B. A configuration is (a part of) its agent / model. More are compared with A, too; "
            "a single job has its own configurations compared.",
        ),
    ],
    basis: Annotated[
        str, typer.Option(help="valid: leave faults of ours out. leaderboard: every error counts 0.")
    ] = "valid",
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Tasks of one name, even if their content differs.")
    ] = False,
    every_task: Annotated[bool, typer.Option("--all", help="List tasks without a difference, too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare A with B on the tasks they have in common: by how much, how surely, and what could not be seen."""

    async def work(session: Installation) -> None:
        from seatrial.domain.comparison import compare_all

        pairs = pair_sides([await look_up(session.store, wanted) for wanted in sides])
        comparisons = compare_all(pairs, basis=_basis(basis), same_name_is_enough=by_name)
        if as_json:
            print_json(comparisons_json(comparisons))
            return
        from seatrial.cli.figures import open_console
        from seatrial.cli.versus import print_comparisons

        print_comparisons(open_console(), comparisons, every_task)

    with_session(work)


def report_json(job: Job, found: JobReport) -> dict[str, object]:
    return {"job": job.id, "name": job.title, **found.model_dump(mode="json")}


def comparisons_json(comparisons: Sequence[Comparison]) -> dict[str, object]:
    from seatrial.domain.verdict import verdict

    return {"comparisons": [{"verdict": verdict(each), **each.model_dump(mode="json")} for each in comparisons]}


def pair_sides(groups: Sequence[tuple[Side, ...]]) -> tuple[tuple[Side, Side], ...]:
    """The first group against each of the others; a single one within itself."""
    from seatrial.domain.comparison import pair_up, pairs_within
    from seatrial.errors import InvalidInput

    named = _told_apart(groups)
    if len(named) == 1:
        pairs = pairs_within(named[0])
    else:
        pairs = tuple(pair for other in named[1:] for pair in pair_up(named[0], other))
    if not pairs:
        raise InvalidInput("There is nothing to compare with.", fix="Name a second job.")
    return pairs


def choose_sides(sides: Sequence[Side], wanted: str, job: Job) -> tuple[Side, ...]:
    """The configurations of a job that are called ``wanted`` or have it in their name; all for an empty one."""
    from seatrial.errors import InvalidInput

    exact = tuple(side for side in sides if side.configuration == wanted)
    found = exact or tuple(side for side in sides if wanted.lower() in side.configuration.lower())
    if not found:
        there = ", ".join(side.configuration for side in sides) or "no trials"
        raise InvalidInput(f"Job {job.id} has no configuration like {wanted!r}.", fix=f"It has: {there}.")
    return found


async def look_up(store: Store, wanted: str) -> tuple[Side, ...]:
    """The sides that ``JOB`` or ``JOB:CONFIGURATION`` stands for."""
    from seatrial.engine.reporting import sides_of_job
    from seatrial.errors import InvalidInput

    number, _, configuration = wanted.partition(":")
    if not number.isdecimal():
        raise InvalidInput(f"{wanted!r} does not begin with a job's number.", fix="Write JOB or JOB:CONFIGURATION.")
    job = await store.job(int(number))
    chosen = choose_sides(await sides_of_job(store, job), configuration, job)
    return tuple(side.model_copy(update={"job": job.id}) for side in chosen)


def _told_apart(groups: Sequence[tuple[Side, ...]]) -> list[tuple[Side, ...]]:
    """Where two jobs have the same configuration, the job's number is added to the label."""
    times = Counter(side.configuration for group in groups for side in group)
    return [
        tuple(
            side.model_copy(update={"label": f"{side.configuration} (job {side.job})"})
            if times[side.configuration] > 1
            else side
            for side in group
        )
        for group in groups
    ]


def _basis(name: str) -> Basis:
    from seatrial.domain.fact import Basis
    from seatrial.errors import InvalidInput

    try:
        return Basis(name)
    except ValueError as error:
        raise InvalidInput(f"--basis {name!r} is not one of: {', '.join(Basis)}.", field="basis") from error
