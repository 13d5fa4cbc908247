"""Open work in machine-sized units."""

from __future__ import annotations

import pytest

from seatrial.domain.fleet.packing import Overcommit
from seatrial.domain.fleet.work_units import MachineSize, OpenWork, Wanted, machines_for, work_units
from seatrial.domain.task import Resources

MACHINE = MachineSize(memory_mb=20_480, cpus=2)
"""Packs 18,432 MB and 16 processors."""
DEFAULT = MachineSize(memory_mb=2048, cpus=1)


NOTHING_DECLARED = Resources()


def wanted(trials: int, asks: Resources = NOTHING_DECLARED, concurrency: int | None = None, job: int = 1) -> Wanted:
    return Wanted(work=OpenWork(job_id=job, task_digest="d", trials=trials, concurrency=concurrency), asks=asks)


def units(*groups: Wanted) -> float:
    return work_units(groups, MACHINE, DEFAULT)


def test_nothing_fills_no_machine() -> None:
    assert (units(), machines_for(units())) == (0, 0)


@pytest.mark.parametrize(
    ("asks", "trials", "filled"),
    [
        (Resources(), 9, 1.0),  # 9 × 2 GB are nine tenths of 20 GB, and 9 of 16 processors
        (Resources(memory_mb=1024, cpus=4), 4, 1.0),  # the processors are scarcer
        (Resources(memory_mb=9216), 1, 0.5),
        (Resources(memory_mb=36_864), 1, 2.0),  # larger than a machine; refused elsewhere
        (Resources(cpus=8), 9, 4.5),
    ],
)
def test_what_is_scarcer_counts(asks: Resources, trials: int, filled: float) -> None:
    assert units(wanted(trials, asks)) == pytest.approx(filled)


def test_memory_of_some_and_processors_of_others_are_packed_together() -> None:
    large, busy = wanted(1, Resources(memory_mb=16_384, cpus=1)), wanted(1, Resources(memory_mb=2048, cpus=15), job=2)
    assert units(large, busy) == pytest.approx(1.0)


def test_a_job_with_a_concurrency_counts_with_no_more_than_that() -> None:
    assert units(wanted(900, concurrency=9)) == pytest.approx(1.0)
    assert units(wanted(9, concurrency=900)) == pytest.approx(1.0)
    small, large = Resources(memory_mb=1024), Resources(memory_mb=3072)
    mixed = units(wanted(50, small, concurrency=9), wanted(50, large, concurrency=9))
    assert mixed == pytest.approx(1.0), "nine average trials"
    assert units(wanted(900, concurrency=9), wanted(9, job=2)) == pytest.approx(2.0), "the limit is the job's own"


def test_the_operators_overcommit_counts() -> None:
    found = [
        work_units([wanted(9)], MACHINE, DEFAULT, overcommit)
        for overcommit in (Overcommit(), Overcommit(memory=2), Overcommit(cpus=1))
    ]
    assert found == pytest.approx([1.0, 9 / 16, 4.5])


@pytest.mark.parametrize(("filled", "machines"), [(0.01, 1), (1.0, 1), (1.0000000001, 1), (1.001, 2), (199.2, 200)])
def test_machines_are_whole(filled: float, machines: int) -> None:
    assert machines_for(filled) == machines
