"""Infrastructure noise: sides of a comparison that the machines or the model's service held up unequally.

A plain rule over all graded trials, documented in ``docs/reference/numbers.md``. It changes no score; it says that a
difference may come from somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from seatrial.domain.suffered import Suffered

LEAST_TRIALS = 5
"""Trials with a measurement that each side needs."""
LEAST_POINTS = 0.05
"""The least difference of the shares: of the time, or of the trials …"""
LEAST_FACTOR = 2.0
"""… and the larger share is at least this many times the smaller one."""


class Strained(NamedTuple):
    """One trial: how long it took, and what it suffered."""

    seconds: float
    suffered: Suffered


class SideOfNoise(NamedTuple):
    label: str
    model: str | None
    trials: Sequence[Strained]


class Shares(NamedTuple):
    """What the trials of one side suffered; ``None``: measured in too few of them."""

    throttled: float | None
    memory: float | None
    """Trials that reached their memory limit."""
    model_wait: float | None
    pace_wait: float | None


_SENTENCES: Mapping[str, str] = {
    "throttled": "the processor limit stopped {a} for {x} of its time and {b} for {y}",
    "memory": "{x} of the trials of {a} and {y} of those of {b} reached their memory limit",
    "model_wait": "{a} waited for the same model for {x} of its time and {b} for {y}",
    "pace_wait": "{a} waited for its turn at the provider for {x} of its time and {b} for {y}",
}


def shares(trials: Iterable[Strained]) -> Shares:
    found = list(trials)
    return Shares(
        _of_time(found, "throttled_sec"),
        _of_trials(found),
        _of_time(found, "model_wait_sec"),
        _of_time(found, "pace_wait_sec"),
    )


def noise_between(a: SideOfNoise, b: SideOfNoise) -> tuple[str, ...]:
    """A sentence for each way in which the sides were held up unequally."""
    of_a, of_b = shares(a.trials), shares(b.trials)
    found = []
    for name, words in _SENTENCES.items():
        if name == "model_wait" and a.model != b.model:
            continue  # another model has another pace: that is what is compared
        x, y = getattr(of_a, name), getattr(of_b, name)
        if x is not None and y is not None and _differ(x, y):
            said = words.format(a=a.label, b=b.label, x=f"{x:.0%}", y=f"{y:.0%}")
            found.append(f"Infrastructure noise: {said}. A difference between them may come from that.")
    return tuple(found)


def noise_within(sides: Sequence[SideOfNoise]) -> tuple[str, ...]:
    """Between all sides, such as the configurations of one job."""
    return tuple(sentence for a, b in combinations(sides, 2) for sentence in noise_between(a, b))


def _differ(x: float, y: float) -> bool:
    larger, smaller = max(x, y), min(x, y)
    return larger - smaller >= LEAST_POINTS and larger >= LEAST_FACTOR * smaller


def _of_time(trials: Sequence[Strained], name: str) -> float | None:
    measured = [each for each in trials if getattr(each.suffered, name) is not None and each.seconds > 0]
    if len(measured) < LEAST_TRIALS:
        return None
    return float(sum(getattr(each.suffered, name) for each in measured) / sum(each.seconds for each in measured))


def _of_trials(trials: Sequence[Strained]) -> float | None:
    measured = [each for each in trials if each.suffered.memory_pressure is not None]
    if len(measured) < LEAST_TRIALS:
        return None
    return sum(bool(each.suffered.memory_pressure) for each in measured) / len(measured)
