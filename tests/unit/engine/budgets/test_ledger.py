"""What a worker spent since its last report outlives its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seatrial.domain.model_calls.budget import Amount, Budget, Cap, Scope
from seatrial.engine.budgets.ledger import Ledgers, read_ledger
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.budgets.trial_budget import Reservation, TrialBudget
from seatrial.system.processes import ProcessIdentity, WorkerName
from seatrial.testing.memory_store.budgets import MemoryBudgets

LEASE = timedelta(seconds=20)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
CAPS = Budget(trial=Cap(dollars=5.0), job=Cap(dollars=50.0))
JOB, TRIAL = Scope.of_job(7), Scope.of_trial(7, 3)
DEAD = WorkerName("here", ProcessIdentity.mine().model_copy(update={"pid": 2**22 - 1}))
"""No process of this machine has so high a number."""


def clock() -> datetime:
    return NOW


def usd(dollars: float) -> Amount:
    return Amount.of(dollars, 10, 1)


@pytest.fixture
def ledgers(tmp_path: Path) -> Ledgers:
    return Ledgers.beside(tmp_path / "work")


def budgets(store: MemoryBudgets, ledgers: Ledgers) -> Budgets:
    """Its time stands still: after five seconds without a report, a call would report what was spent before it."""
    return Budgets(store, "worker", clock, LEASE, Cap(), elapsed=lambda: 0.0, ledgers=ledgers)


@contextmanager
def trial(worker: Budgets, number: int = 3) -> Iterator[TrialBudget]:
    with TrialBudget(worker, number, 1, 7, CAPS) as opened:
        yield opened


async def granted(budget: TrialBudget, dollars: float) -> Reservation:
    found = await budget.reserve(usd(dollars))
    assert isinstance(found, Reservation)
    return found


async def spent(store: MemoryBudgets, scope: Scope = JOB) -> Amount:
    return (await store.spending([scope]))[scope.name].spent


def kill(ledgers: Ledgers) -> Path:
    """As if the process were gone: its file has the name of one that is."""
    [path] = ledgers.folder.iterdir()
    return path.rename(path.with_name(f"{DEAD.folder}@{path.name.rpartition('@')[2]}"))


async def test_what_a_killed_worker_spent_since_its_report_is_counted(ledgers: Ledgers) -> None:
    store = MemoryBudgets()
    worker = budgets(store, ledgers)
    with trial(worker) as budget:
        (await granted(budget, 1.0)).settle(usd(0.5))
        await worker.sync()
        (await granted(budget, 1.0)).settle(usd(0.25))
        await granted(budget, 1.0)  # still under way
        kill(ledgers)
        assert await spent(store) == usd(0.5), "the store knows the first call only"
        assert await ledgers.settle_dead(store, LEASE, clock) == 1
    assert await spent(store) == await spent(store, TRIAL) == Amount.of(1.75, 30, 3)
    assert (await store.spending([JOB]))[JOB.name].in_flight == Amount()


async def test_it_is_counted_once_whoever_reports_it(ledgers: Ledgers) -> None:
    store = MemoryBudgets()
    worker = budgets(store, ledgers)
    with trial(worker) as budget:
        (await granted(budget, 1.0)).settle(usd(0.5))
        path = kill(ledgers)
        [*reports] = read_ledger(path)
        for _ in range(2):  # two processes found it at the same moment
            await store.exchange(reports, LEASE, NOW)
        await ledgers.settle_dead(store, LEASE, clock)
    assert await spent(store) == usd(0.5) and not list(ledgers.folder.iterdir())


async def test_a_worker_that_lives_reports_for_itself(ledgers: Ledgers) -> None:
    store = MemoryBudgets()
    worker = budgets(store, ledgers)
    with trial(worker) as budget:
        call = await granted(budget, 1.0)
        assert await ledgers.settle_dead(store, LEASE, clock) == 0
        call.settle(usd(0.5))
    await worker.leave()
    assert await spent(store) == usd(0.5) and not list(ledgers.folder.iterdir())


async def test_trials_that_have_ended_take_no_room(ledgers: Ledgers) -> None:
    store = MemoryBudgets()
    worker = budgets(store, ledgers)
    for number in range(1, 30):
        with trial(worker, number) as budget:
            (await granted(budget, 0.1)).settle(usd(0.1))
        await worker.sync()
        await asyncio.sleep(0)
    [path] = ledgers.folder.iterdir()
    assert path.stat().st_size <= 4 * 1024 and await spent(store) == Amount.of(2.9, 290, 29)


async def test_one_budgets_after_another_in_a_process_count_both(ledgers: Ledgers) -> None:
    """As when one command runs two jobs: the same worker, the same day."""
    store = MemoryBudgets()
    for _ in range(2):
        worker = budgets(store, ledgers)
        with trial(worker) as budget:
            (await granted(budget, 1.0)).settle(usd(0.5))
        await worker.leave()
    assert await spent(store) == Amount.of(1.0, 20, 2) == await spent(store, Scope.of_day(NOW))


async def test_a_torn_or_old_ledger_stops_nobody(ledgers: Ledgers) -> None:
    store = MemoryBudgets()
    with trial(budgets(store, ledgers)) as budget:
        (await granted(budget, 1.0)).settle(usd(0.5))
        path = kill(ledgers)
    torn = path.with_name(f"{DEAD.folder}@torn")
    torn.write_bytes(b'["worker#1", "job:7", 7, 0, [1,'.ljust(1024) + b"\xff" * 700)
    old = path.with_name(f"{DEAD.folder}@old")
    old.write_bytes(path.read_bytes())
    os.utime(old, (0, 0))
    assert read_ledger(torn) == [] == read_ledger(old)
    assert await ledgers.settle_dead(store, LEASE, clock) == 3
    assert await spent(store) == usd(0.5)
