"""Methods for comparisons, of jobs and their configurations."""

from __future__ import annotations

from seatrial.client.ask import Ask, Parameters, given, reads
from seatrial.domain.reports.fact import Basis
from seatrial.engine.reports.attempt_pairs import TaskPairs
from seatrial.engine.reports.circumstances import ComparedCircumstances
from seatrial.shapes.comparisons import Comparisons, JudgedComparison

type Named = int | str
"""``JOB`` or ``"JOB:CONFIGURATION"``"""


def compare_jobs(
    baseline: Named, *others: Named, basis: Basis = Basis.VALID, by_name: bool = False
) -> Ask[list[JudgedComparison]]:
    """Compares ``JOB`` or ``"JOB:CONFIGURATION"`` with each of the others; without others, the first configuration of
    one job with its others."""
    params = _wanted(baseline, others, basis, by_name)
    return Ask("GET", "/compare", lambda answer: reads(Comparisons)(answer).items, params)


def read_comparison(
    baseline: Named,
    *others: Named,
    basis: Basis = Basis.VALID,
    by_name: bool = False,
    every_pair: bool = False,
) -> Ask[Comparisons]:
    """The same with the matrix of tasks × pairs. ``every_pair``: each configuration of one job with each."""
    params = _wanted(baseline, others, basis, by_name, every_pair)
    return Ask("GET", "/compare", reads(Comparisons), params)


def read_circumstances(
    baseline: Named,
    *others: Named,
    basis: Basis = Basis.VALID,
    by_name: bool = False,
    every_pair: bool = False,
) -> Ask[ComparedCircumstances]:
    """In what the compared sides differ besides their score."""
    params = _wanted(baseline, others, basis, by_name, every_pair)
    return Ask("GET", "/compare/circumstances", reads(ComparedCircumstances), params)


def read_pairs(baseline: Named, other: Named, task: str, *, basis: Basis = Basis.VALID) -> Ask[TaskPairs]:
    """The trials of one task on both sides, attempt by attempt."""
    params = given(baseline=str(baseline), other=str(other), task=task, basis=basis)
    return Ask("GET", "/compare/pairs", reads(TaskPairs), params)


def _wanted(
    baseline: Named, others: tuple[Named, ...], basis: Basis, by_name: bool, every_pair: bool = False
) -> Parameters:
    names = [str(each) for each in others]
    return given(baseline=str(baseline), other=names, basis=basis, by_name=by_name, every_pair=every_pair)
