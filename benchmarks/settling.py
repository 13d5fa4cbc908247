"""How many trials ``--until-settled`` saves, and how often it is wrong, on simulated pairs of configurations.

The comparison: jobs of 89 tasks with at most 5 attempts, alpha 5 %. The peer is the fixed design: all 5 attempts of all
tasks (890 trials), then the sign-flip test of ``seatrial compare`` at the same alpha. Both see the same outcomes.
*Power* is the share of jobs that name the better configuration. The saving counts at the same error rates if the power
is that of the fixed design, less at most three standard errors of the simulation and two points.
"""

from __future__ import annotations

import math

from tests.simulated_pairs import MIXES, NULLS, Draw, Simulated, shift_for, simulate

from benchmarks.place import Place
from benchmarks.row import Row
from seatrial.domain.reports.settling import Finding

_TASKS, _ATTEMPTS, _ALPHA = 89, 5, 0.05
_DIFFERENCE = 0.15
_LEAST_SAVING = 0.4
_POWER_LOSS = 0.02


async def measure(place: Place) -> list[Row]:
    jobs = place.count(1000, 40)
    return [_saving(name, mix, jobs) for name, mix in MIXES.items()] + [
        _error(name, mix, jobs) for name, mix in NULLS.items()
    ]


def _runs(mix: Draw, shift: float, jobs: int) -> list[Simulated]:
    return [simulate(mix, shift, _TASKS, _ATTEMPTS, seed, _ALPHA) for seed in range(jobs)]


def _saving(name: str, mix: Draw, jobs: int) -> Row:
    runs = _runs(mix, shift_for(mix, _DIFFERENCE), jobs)
    power = sum(run.finding is Finding.A_BETTER for run in runs) / jobs
    fixed = sum(run.fixed_p <= _ALPHA for run in runs) / jobs
    planned = 2 * _TASKS * _ATTEMPTS
    trials = math.fsum(run.trials for run in runs) / jobs
    lost = fixed - power
    met = trials <= (1 - _LEAST_SAVING) * planned and lost <= _POWER_LOSS + 3 * math.sqrt(fixed * (1 - fixed) / jobs)
    return Row(
        f"until settled, 15 points apart, {name}",
        f"{trials:.0f} trials, power {100 * power:.1f} %",
        f"<= {1 - _LEAST_SAVING:g} × at the same power",
        met,
        f"fixed {planned} trials, power {100 * fixed:.1f} %",
        trials / planned,
    )


def _error(name: str, mix: Draw, jobs: int) -> Row:
    runs = _runs(mix, 0.0, jobs)
    wrong = sum(run.finding in (Finding.A_BETTER, Finding.B_BETTER) for run in runs) / jobs
    fixed = sum(run.fixed_p <= _ALPHA for run in runs) / jobs
    trials = math.fsum(run.trials for run in runs) / jobs
    slack = 3 * math.sqrt(_ALPHA * (1 - _ALPHA) / jobs)
    return Row(
        f"until settled, no difference, {name}",
        f"{100 * wrong:.1f} % name a winner, {trials:.0f} trials",
        f"<= {100 * _ALPHA:g} % (+ {100 * slack:.1f})",
        wrong <= _ALPHA + slack,
        f"fixed {100 * fixed:.1f} %",
    )
