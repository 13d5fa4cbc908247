"""Finds the sides of a comparison from ``JOB`` and ``JOB:CONFIGURATION``, for ``seatrial compare`` and the API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from seatrial.domain.comparison import Side, pair_up, pairs_within
from seatrial.domain.job import Job
from seatrial.engine.reports.reporting import sides_of_job
from seatrial.errors import InvalidInput
from seatrial.ports.store import Store

_LARGEST_ID = 2**63 - 1


async def look_up(store: Store, wanted: str) -> tuple[Side, ...]:
    """The sides that ``JOB`` or ``JOB:CONFIGURATION`` names."""
    number, _, configuration = wanted.partition(":")
    if not (number.isascii() and number.isdecimal()) or len(number) > 19 or int(number) > _LARGEST_ID:
        raise InvalidInput(f"{wanted!r} does not begin with a job's number.", fix="Write JOB or JOB:CONFIGURATION.")
    job = await store.jobs.get(int(number))
    chosen = choose_sides(await sides_of_job(store.trials, job), configuration, job)
    return tuple(side.model_copy(update={"job": job.id}) for side in chosen)


def choose_sides(sides: Sequence[Side], wanted: str, job: Job) -> tuple[Side, ...]:
    """The configurations named ``wanted``, otherwise those that contain it. An empty ``wanted`` means all."""
    exact = tuple(side for side in sides if side.configuration == wanted)
    found = exact or tuple(side for side in sides if wanted.lower() in side.configuration.lower())
    if not found:
        there = ", ".join(side.configuration for side in sides) or "no trials"
        raise InvalidInput(f"Job {job.id} has no configuration like {wanted!r}.", fix=f"It has: {there}.")
    return found


def pair_sides(groups: Sequence[tuple[Side, ...]]) -> tuple[tuple[Side, Side], ...]:
    """Pairs the first group with each of the others. A single group is paired within itself."""
    named = _distinguished(groups)
    if len(named) == 1:
        pairs = pairs_within(named[0])
    else:
        pairs = tuple(pair for other in named[1:] for pair in pair_up(named[0], other))
    if not pairs:
        raise InvalidInput("There is nothing to compare with.", fix="Name a second job.")
    return pairs


def _distinguished(groups: Sequence[tuple[Side, ...]]) -> list[tuple[Side, ...]]:
    """Adds the number of the job to labels that occur in several jobs."""
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
