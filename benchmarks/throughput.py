"""Trials per second on our sandboxes and on stock Harbor's Docker environment: alone, 20 and 40 at once.

All have limits, seccomp and a network. Stock Harbor gets its image ready made, so that it never builds.
"""

from __future__ import annotations

from harbor.models.trial.config import EnvironmentConfig
from tests.engine import Engine

from benchmarks.place import TRIVIAL, Place, copy_task, running_engine
from benchmarks.row import Row, faster, quicker
from benchmarks.trials import DOCKER, OCI, Subject, our_subject, run_trial, seconds_for

STOCK = "stock Harbor"
_TIMES = {"oci": (20.0, 25.0), "docker": (8.0, 5.0)}
"""Promised for one trial alone, and for many at once."""


async def measure(place: Place) -> list[Row]:
    with running_engine(place) as engine:
        subjects = await _subjects(place, engine)
        counts = _counts(place)
        alone = {one.name: await seconds_for(place, one, counts[one.name][0], 1) for one in subjects}
        rows = [
            quicker(
                f"one trial alone, {name}",
                alone[name] / counts[name][0],
                STOCK,
                alone[STOCK] / counts[STOCK][0],
                _TIMES[name][0],
            )
            for name in _TIMES
        ]
        for at_once in (20, 40):
            rows += await _many(place, subjects, at_once)
    return rows


async def _many(place: Place, subjects: list[Subject], at_once: int) -> list[Row]:
    rates = {}
    for subject in subjects:
        rounds = _counts(place)[subject.name][1]
        rates[subject.name] = rounds * at_once / await seconds_for(place, subject, rounds * at_once, at_once)
    return [
        faster(f"trials per second, {name}, {at_once} at once", rates[name], STOCK, rates[STOCK], _TIMES[name][1])
        for name in _TIMES
    ]


def _counts(place: Place) -> dict[str, tuple[int, int]]:
    """How many trials alone, and how many rounds of many at once; stock Harbor takes seconds for each."""
    return {
        "oci": (place.count(20, 5), place.count(5, 2)),
        "docker": (place.count(10, 3), place.count(2, 1)),
        STOCK: (place.count(4, 1), 1),
    }


async def _subjects(place: Place, engine: Engine) -> list[Subject]:
    """All of them warm: each has run one trial."""
    oci = our_subject(place, "oci", OCI, TRIVIAL, place.options())
    docker = our_subject(place, "docker", DOCKER, TRIVIAL, place.options(engine))
    await run_trial(place, oci)
    image = (await run_trial(place, docker)).agent_environment.facts.image
    ready = copy_task(place, "stock", settings=f'docker_image = "{image}"\n')
    stock = Subject(STOCK, ready, EnvironmentConfig(type="docker"))
    await run_trial(place, stock)
    return [oci, docker, stock]
