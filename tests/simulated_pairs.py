"""Simulated pairs of configurations over tasks of realistic difficulty. For tests and benchmarks of ``settling``."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from seatrial.domain.reports.settling import QUIET_AFTER, Finding, UntilSettled, course, looks
from seatrial.domain.statistics.significance import sign_flip

Rates = tuple[float, float]
"""How often A and B pass a task."""
Draw = Callable[[random.Random, float], Rates]
"""Draws a task; the number shifts A up and B down on the logit scale."""


def _shifted(rate: float, by: float) -> float:
    rate = min(max(rate, 1e-4), 1 - 1e-4)
    return 1 / (1 + math.exp(-(math.log(rate / (1 - rate)) + by)))


def _spread(alpha: float, beta: float, own: float) -> Draw:
    """Difficulty from a beta distribution; each configuration is better or worse at a task by chance (``own``)."""

    def draw(rng: random.Random, shift: float) -> Rates:
        rate = rng.betavariate(alpha, beta)
        return _shifted(rate, rng.gauss(0, own) + shift), _shifted(rate, rng.gauss(0, own) - shift)

    return draw


def _some_gain(rng: random.Random, shift: float) -> Rates:
    """A solves some of the tasks that B fails; on all others both are the same."""
    rate = rng.betavariate(0.4, 0.4)
    return (min(0.99, rate + 0.6) if rng.random() < shift else rate), rate


def _lopsided(rng: random.Random, shift: float) -> Rates:
    """A is clearly better at a few tasks and a little worse at many, and equally good on average."""
    return (0.9, 0.2) if rng.random() < 0.125 else (0.4, 0.5)


MIXES: dict[str, Draw] = {
    "mostly very easy or very hard": _spread(0.4, 0.4, 1.0),
    "mostly of middling difficulty": _spread(2.0, 2.0, 0.5),
    "mostly hard": _spread(0.4, 0.9, 1.5),
    "strengths differ from task to task": _spread(0.5, 0.5, 3.0),
    "gains on some tasks only": _some_gain,
}
NULLS: dict[str, Draw] = {**{name: mix for name, mix in MIXES.items() if mix is not _some_gain}, "lopsided": _lopsided}


def shift_for(mix: Draw, difference: float, sample: int = 8000) -> float:
    """The shift for which A passes that much more than B."""
    low, high = 0.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        rng = random.Random(7)
        tasks = [mix(rng, middle) for _ in range(sample)]
        found = math.fsum(a - b for a, b in tasks) / len(tasks)
        low, high = (middle, high) if found < difference else (low, middle)
    return low


@dataclass(frozen=True)
class Simulated:
    finding: Finding
    trials: int
    fixed_p: float
    """The p-value of ``seatrial compare`` after all attempts at all tasks."""


def simulate(mix: Draw, shift: float, tasks: int, attempts: int, seed: int, alpha: float = 0.05) -> Simulated:
    """One job with all its outcomes: stopped by the rule, and run to its end."""
    rng = random.Random(seed)
    names = [f"task-{number}" for number in range(tasks)]
    ended: dict[tuple[str, int, int], bool] = {}
    for name in names:
        for side, rate in enumerate(mix(rng, shift)):
            ended |= {(name, side, attempt): rng.random() < rate for attempt in range(1, attempts + 1)}
    rule = UntilSettled(alpha=alpha, seed=seed)
    found = course(rule, names, attempts, ended)
    differences = [
        Fraction(sum(ended[name, 0, k] - ended[name, 1, k] for k in range(1, attempts + 1)), attempts) for name in names
    ]
    point = looks(tasks, attempts)[found.looks_made - 1]
    quiet = sum(
        len({ended[name, side, k] for side in (0, 1) for k in range(1, min(3, attempts) + 1)}) == 1 for name in names
    )
    pairs = min(point, QUIET_AFTER * tasks) + max(0, point - QUIET_AFTER * tasks) * (tasks - quiet) // tasks
    return Simulated(found.finding, 2 * pairs, sign_flip(differences, seed).p)
