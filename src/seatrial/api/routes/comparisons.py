"""Comparisons of jobs, of their configurations, and of two trials."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Query

from seatrial.api.context import Service, ServiceDep
from seatrial.api.routes.pages import TrialId
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.comparisons.divergence import Divergence, diverge
from seatrial.domain.reports.fact import Basis
from seatrial.engine.reports.attempt_pairs import TaskPairs, pair_attempts
from seatrial.engine.reports.circumstances import ComparedCircumstances, compare_circumstances
from seatrial.engine.reports.comparing import ComparisonWish, compare_jobs
from seatrial.errors import NotFound
from seatrial.ports.store import TrialRow
from seatrial.shapes.answers import Plain
from seatrial.shapes.comparisons import Comparisons

router = native_router("", "comparisons")
_LARGEST_TRAJECTORY = 64 << 20


def _wish(
    baseline: Annotated[Plain, Query(description="A: JOB or JOB:CONFIGURATION.")],
    other: Annotated[
        list[Plain] | None,
        Query(
            max_length=20,
            description="B, repeatable: each is compared with A. Default: A's first configuration against its others.",
        ),
    ] = None,
    basis: Basis = Basis.VALID,
    by_name: Annotated[bool, Query(description="Match tasks by name, even if their content differs.")] = False,
    every_pair: Annotated[
        bool, Query(description="Without `other`: compare each configuration of A with each.")
    ] = False,
) -> ComparisonWish:
    return ComparisonWish(sides=(baseline, *(other or ())), basis=basis, by_name=by_name, every_pair=every_pair)


WishDep = Annotated[ComparisonWish, Depends(_wish)]


@router.get("/compare", responses=errors(404))
async def compare(service: ServiceDep, wish: WishDep) -> Comparisons:
    """Compares A with B on their common tasks: the difference, its confidence, and the smallest detectable
    difference.

    `a_minus_b` is the score of A minus that of B. P-values of several pairs are Holm-corrected. `matrix` has every
    task with its difference in each pair.
    """
    return Comparisons.of(await compare_jobs(service.installation.store, wish))


@router.get("/compare/circumstances", responses=errors(404))
async def get_circumstances(service: ServiceDep, wish: WishDep) -> ComparedCircumstances:
    """In what the compared sides differ besides their score: configuration, versions, infrastructure, load, trouble.

    What only locks tell is read from a sample of trials; `sampled` says how many.
    """
    return await compare_circumstances(service.installation.store, wish)


@router.get("/compare/pairs", responses=errors(404))
async def get_pairs(
    service: ServiceDep,
    baseline: Annotated[Plain, Query(description="A: JOB or JOB:CONFIGURATION.")],
    other: Annotated[Plain, Query(description="B: JOB or JOB:CONFIGURATION.")],
    task: Annotated[Plain, Query(description="Its name in the comparison.")],
    basis: Basis = Basis.VALID,
) -> TaskPairs:
    """The trials of one task on both sides, attempt by attempt, with the tests that flipped."""
    return await pair_attempts(service.installation.store, baseline, other, task, basis)


@router.get("/trials/{trial_id}/diverges-from/{other_id}", responses=errors(404, 409))
async def get_divergence(service: ServiceDep, trial_id: TrialId, other_id: TrialId) -> Divergence:
    """The first step at which the agents of two trials acted differently, all their steps side by side, and the tests
    with different results.

    `left` is the trial named first.
    """
    store = service.installation.store
    left, right = await store.trials.get(trial_id), await store.trials.get(other_id)
    tests = [row.result.tests if row.result else () for row in (left, right)]
    trajectories = await _trajectory(service, left), await _trajectory(service, right)
    return await asyncio.to_thread(diverge, *trajectories, *tests)


async def _trajectory(service: Service, row: TrialRow) -> Any:
    try:
        kept = await service.files.kept(row.trial.id)
        file = kept.first("agent/trajectory.json")
    except NotFound:
        return None
    return await service.files.read_json(kept, file, _LARGEST_TRAJECTORY)
