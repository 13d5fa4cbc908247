"""Compares jobs and configurations, named as ``JOB`` or ``JOB:CONFIGURATION``, for ``seatrial compare`` and the API.

Reads sums over trials from the store, never single trials: a job may have a hundred thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seatrial.domain.comparisons.comparison import Comparison, Side, against_first, compare_all, pair_up, pairs_within
from seatrial.domain.comparisons.difference_matrix import MatrixRow, difference_matrix
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.reports.fact import Basis
from seatrial.engine.reports.reporting import configuration_labels, task_names
from seatrial.engine.reports.tallied import counts_of, effort_of
from seatrial.errors import InvalidInput
from seatrial.ports.store import SpentTally, Store


class Compared(Frozen):
    items: tuple[Comparison, ...]
    matrix: tuple[MatrixRow, ...]
    """Tasks × ``items``, the largest losses first."""


class ComparisonWish(Frozen):
    """What to compare, and by which rule."""

    sides: tuple[str, ...]
    """A, then each B. One alone: its configurations."""
    basis: Basis = Basis.VALID
    by_name: bool = False
    """Compare tasks with the same name even if their content differs."""
    every_pair: bool = False
    """With one job: compare every pair of configurations, instead of the first with the others."""


async def compare_jobs(store: Store, wish: ComparisonWish) -> Compared:
    pairs = await wanted_pairs(store, wish)
    return await asyncio.to_thread(_compared, pairs, wish)  # others may not wait for the draws


async def wanted_pairs(store: Store, wish: ComparisonWish) -> tuple[tuple[Side, Side], ...]:
    found = []
    for place, wanted in enumerate(wish.sides):
        try:
            found.append(await look_up(store, wanted))
        except InvalidInput as error:
            raise InvalidInput(error.message, field="other" if place else "baseline", fix=error.fix) from error
    return pair_sides(found, every_pair=wish.every_pair)


def _compared(pairs: Sequence[tuple[Side, Side]], wish: ComparisonWish) -> Compared:
    found = compare_all(pairs, basis=wish.basis, same_name_is_enough=wish.by_name)
    return Compared(items=found, matrix=difference_matrix(pairs, found))


async def look_up(store: Store, wanted: str) -> tuple[Side, ...]:
    """The sides that ``JOB`` or ``JOB:CONFIGURATION`` names."""
    number, _, configuration = wanted.partition(":")
    if not (number.isascii() and number.isdecimal()) or len(number) > 19 or int(number) > LARGEST_ID:
        raise InvalidInput(f"{wanted!r} does not begin with a job's number.", fix="Write JOB or JOB:CONFIGURATION.")
    job = await store.jobs.get(int(number))
    return choose_sides(await sides_of_job(store, job), configuration, job)


async def sides_of_job(store: Store, job: Job) -> tuple[Side, ...]:
    """One side for each configuration of the job that has trials, in the job's order. Without added attempts."""
    names = task_names(job.spec.tasks)
    found: dict[int, dict[str, list[SpentTally]]] = {}
    for tally in (await store.jobs.spent_tallies([job.id]))[job.id]:
        found.setdefault(tally.agent_index, {}).setdefault(tally.digest, []).append(tally)
    labels = configuration_labels(job.spec.agents)
    return tuple(_side(job, labels[index], names, found[index]) for index in sorted(found))


def _side(job: Job, label: str, names: dict[str, str], found: dict[str, list[SpentTally]]) -> Side:
    named = dict(sorted((names.get(digest, digest), digest) for digest in found))
    return Side(
        label=label,
        configuration=label,
        job=job.id,
        tasks={task: counts_of(found[digest]) for task, digest in named.items()},
        digests=named,
        efforts={task: effort_of(found[digest]) for task, digest in named.items()},
    )


def choose_sides(sides: Sequence[Side], wanted: str, job: Job) -> tuple[Side, ...]:
    """The configurations named ``wanted``, otherwise those that contain it. An empty ``wanted`` means all."""
    exact = tuple(side for side in sides if side.configuration == wanted)
    found = exact or tuple(side for side in sides if wanted.lower() in side.configuration.lower())
    if not found:
        there = ", ".join(side.configuration for side in sides) or "no trials"
        raise InvalidInput(f"Job {job.id} has no configuration like {wanted!r}.", fix=f"It has: {there}.")
    return found


def pair_sides(groups: Sequence[tuple[Side, ...]], *, every_pair: bool = False) -> tuple[tuple[Side, Side], ...]:
    """Pairs the first group with each of the others. Within a single group, its first side with the others."""
    named = _distinguished(groups)
    if len(named) == 1:
        pairs = pairs_within(named[0]) if every_pair else against_first(named[0])
    else:
        pairs = tuple(pair for other in named[1:] for pair in pair_up(named[0], other))
    once: dict[object, tuple[Side, Side]] = {}
    for pair in pairs:  # a job that was named twice is compared once
        once.setdefault(frozenset((side.job, side.configuration) for side in pair), pair)
    if not once:
        raise InvalidInput("There is nothing to compare with.", fix="Name a second job.")
    return tuple(once.values())


def _distinguished(groups: Sequence[tuple[Side, ...]]) -> list[tuple[Side, ...]]:
    """Adds the number of the job to labels that occur in several jobs."""
    jobs: dict[str, set[int | None]] = {}
    for group in groups:
        for side in group:
            jobs.setdefault(side.configuration, set()).add(side.job)
    return [
        tuple(
            side.model_copy(update={"label": f"{side.configuration} (job {side.job})"})
            if len(jobs[side.configuration]) > 1
            else side
            for side in group
        )
        for group in groups
    ]
