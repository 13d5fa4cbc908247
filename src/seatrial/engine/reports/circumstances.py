"""Reads how the sides of a comparison ran: their specs, and the locks of a sample of their trials.

A lock is part of a result, which may be large, so a sample of the same tasks on every side stands for all trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from seatrial.domain.comparisons.circumstances import Circumstances, Trait, traits
from seatrial.domain.comparisons.comparison import Side
from seatrial.domain.comparisons.noise import SideOfNoise, noise_between, shares
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job
from seatrial.domain.reports.fact import count
from seatrial.domain.reports.rules import replay_sentence
from seatrial.domain.trial import Outcome
from seatrial.engine.reports.comparing import ComparisonWish, wanted_pairs
from seatrial.engine.reports.reporting import configuration_labels, facts_of, sides_of_noise
from seatrial.ports.store import Store, TrialNumbers, TrialRow

SAMPLE = 20
"""Tasks of which one trial each is read, on every side."""


class SideOfComparison(Frozen):
    label: str
    job: int
    job_name: str
    configuration: str
    sampled: int
    """Trials whose locks were read."""


class ComparedCircumstances(Frozen):
    sides: tuple[SideOfComparison, ...]
    traits: tuple[Trait, ...]
    """All of them; those with different ``values`` differ."""
    noise: tuple[str, ...] = ()
    """Ways in which the machines or the model's service held up the sides unequally, and sides that are replayed."""


async def compare_circumstances(store: Store, wish: ComparisonWish) -> ComparedCircumstances:
    pairs = await wanted_pairs(store, wish)
    sides = list({(side.job, side.configuration): side for pair in pairs for side in pair}.values())
    jobs = {job_id: await store.jobs.get(job_id) for job_id in {side.job for side in sides if side.job is not None}}
    numbers = {job_id: await store.trials.numbers(job_id) for job_id in jobs}
    tasks = _sampled_tasks(sides)
    found = [
        await _read(store, jobs[side.job], side, numbers[side.job], tasks) for side in sides if side.job is not None
    ]
    named = (
        SideOfComparison(
            label=side.label,
            job=side.job,
            job_name=jobs[side.job].title,
            configuration=side.configuration,
            sampled=len(circumstances.locks),
        )
        for side, circumstances in zip(sides, found, strict=True)
        if side.job is not None
    )
    noise = [
        sentence
        for a, b in pairs
        if a.job is not None and b.job is not None
        for sentence in noise_between(_strained(jobs[a.job], a, numbers), _strained(jobs[b.job], b, numbers))
    ]
    replays = [
        replay_sentence(spec.replay.trial, side.label)
        for side in sides
        if side.job is not None and (spec := jobs[side.job].spec).replay is not None
    ]
    said = tuple(dict.fromkeys([*replays, *noise]))
    return ComparedCircumstances(sides=tuple(named), traits=traits(found), noise=said)


def _strained(job: Job, side: Side, numbers: Mapping[int, Sequence[TrialNumbers]]) -> SideOfNoise:
    index = configuration_labels(job.spec.agents).index(side.configuration)
    return sides_of_noise(numbers[job.id], job.spec)[index]._replace(label=side.label)


def _sampled_tasks(sides: Sequence[Side]) -> list[str]:
    """Digests of tasks that every side has, spread over all; those of any side if there are none."""
    digests = [set(side.digests.values()) for side in sides]
    chosen = sorted(set.intersection(*digests) or set.union(*digests))
    apart = max(1, len(chosen) // SAMPLE)
    return chosen[::apart][:SAMPLE]


async def _read(
    store: Store, job: Job, side: Side, numbers: Sequence[TrialNumbers], tasks: Sequence[str]
) -> Circumstances:
    index = configuration_labels(job.spec.agents).index(side.configuration)
    mine = [each for each in numbers if each.agent_index == index and not each.added]
    rows = [await store.trials.get(trial_id) for trial_id in _sample(mine, tasks)]
    totals = (await store.jobs.numbers([job.id]))[job.id].totals
    wall = (job.ended_at - totals.started_at).total_seconds() if job.ended_at and totals.started_at else 0.0
    return Circumstances(
        spec=job.spec,
        agent=job.spec.agents[index],
        counts=count(facts_of(mine, job.spec)),
        locks=tuple(row.result.lock for row in rows if row.result is not None and row.result.lock is not None),
        workers=dict(_workers(rows)),
        retried=sum(max(0, each.tries - 1) for each in mine),
        at_once=totals.seconds / wall if wall > 0 else None,
        suffered=shares(sides_of_noise(mine, job.spec)[index].trials),
    )


def _sample(numbers: Sequence[TrialNumbers], tasks: Sequence[str]) -> list[int]:
    """One ended trial of each task: another attempt of each, so that they are from all over the run."""
    ended: dict[str, list[int]] = {}
    for each in numbers:
        if each.outcome is not None and each.outcome is not Outcome.CANCELLED:
            ended.setdefault(each.task.digest, []).append(each.trial_id)
    found = ((place, ended[task]) for place, task in enumerate(tasks) if task in ended)
    return [trials[place % len(trials)] for place, trials in found]


def _workers(rows: Sequence[TrialRow]) -> Counter[str]:
    return Counter(row.trial.worker for row in rows if row.trial.worker)
