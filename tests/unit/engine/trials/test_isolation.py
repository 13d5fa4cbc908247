"""Trials that kill their worker, among others that do not: each killer is found, nobody else is blamed, and it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.fleet.worker_death import Death, Exit
from seatrial.domain.job import AgentSpec, JobSpec, RetryPolicy, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import OUTSIDE_LOSSES_ALLOWED, Cause, Outcome, Trial, TrialState
from seatrial.engine.trials.autopsy import Autopsy, Witnesses
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.ports.store import Heartbeat, TrialFilter
from seatrial.system.processes import boot_id
from seatrial.testing.memory_store import MemoryStore
from tests.most_tries import most_tries

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=1)
PASSED = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
TASK = TaskRef(name="hello", digest=f"sha256:{0:064x}")


class Shop:
    """Workers that live until a killer comes to them; everything that happens takes a second."""

    def __init__(self, folder: Path, killers: frozenset[int], death: Death = Death.UNKNOWN) -> None:
        self.store = MemoryStore()
        self.now = NOW
        self._killers = killers
        self._dead: set[str] = set()
        self._hired = 0
        trust = LeaseTrust(lease_sec=30, heartbeat_sec=5, reap_sec=10)
        notes = Witnesses(exit_of=lambda _: Exit(status=_STATUS[death]) if death in _STATUS else None)
        autopsy = Autopsy(self.store.workers, self.clock, notes)
        wake_up = LocalWakeUp(folder)
        self._recovery = Recovery(self.store, wake_up, self.clock, self._dead.__contains__, trust, autopsy)

    def clock(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    async def open_job(self, trials: int, max_tries: int) -> None:
        retry = RetryPolicy(max_attempts=max_tries)
        spec = JobSpec(tasks=(TASK,), agents=(AgentSpec(name="oracle"),), attempts=trials, retry=retry)
        await self.store.jobs.create(spec, tuple(plan(spec)), self.clock())

    async def shift(self, capacity: int, ends_first: int = 0) -> bool:
        """One worker takes what it may have: a killer among that ends it, after some others passed. False: no work."""
        worker = f"h:{self._hired + 1}:1-1-{boot_id()}"
        about = Heartbeat(worker=worker, host="h", pid=self._hired + 1, capacity=capacity, started_at=self.now)
        await self.store.workers.beat(about, self.clock())
        claimed = await self.store.trials.claim(worker, LEASE, capacity, self.clock())
        if not claimed:
            for found in await self.store.trials.suspects(self.clock()):
                claimed = await self.store.trials.claim(worker, LEASE, capacity, self.clock(), group=found.group)
                break
        killed = any(trial.id in self._killers for trial in claimed)
        innocent = [trial for trial in claimed if trial.id not in self._killers]
        for trial in innocent[:ends_first] if killed else innocent:
            await self.store.trials.finish(trial.id, trial.try_number, PASSED, self.clock())
        if killed:
            self._dead.add(worker)
            self._hired += 1
            await self._recovery.sweep()
        return bool(claimed)

    async def trials(self) -> dict[int, Trial]:
        return {row.trial.id: row.trial async for row in self.store.trials.each(TrialFilter())}


_STATUS = {Death.KILLED: -9, Death.CRASH: -11}


@settings(max_examples=60, deadline=None)
@given(
    trials=st.integers(1, 25),
    capacity=st.integers(1, 12),
    max_tries=st.integers(2, 4),
    killers=st.frozensets(st.integers(1, 25), max_size=6),
    death=st.sampled_from([Death.UNKNOWN, Death.CRASH, Death.KILLED]),
    ends_first=st.integers(0, 3),
)
async def test_only_killers_are_blamed_and_it_comes_to_an_end(
    tmp_path_factory: pytest.TempPathFactory,
    trials: int,
    capacity: int,
    max_tries: int,
    killers: frozenset[int],
    death: Death,
    ends_first: int,
) -> None:
    """However the killers do it, even if it looks like a kill from outside."""
    shop = Shop(tmp_path_factory.getbasetemp(), killers, death)
    await shop.open_job(trials, max_tries)
    shifts = 0
    while await shop.shift(capacity, ends_first):
        shifts += 1
        assert shifts <= trials * most_tries(max_tries, capacity), "no end"
    ended = await shop.trials()
    assert {trial.state for trial in ended.values()} == {TrialState.ENDED}
    blamed = {number for number, trial in ended.items() if trial.outcome is Outcome.ERROR}
    assert blamed == {number for number in killers if number <= trials}
    assert all(ended[number].cause is Cause.WORKER_LOST for number in blamed)
    assert all(trial.try_number <= most_tries(max_tries, capacity) for trial in ended.values())


async def test_a_killer_among_a_hundred_costs_few_processes(tmp_path: Path) -> None:
    """By halves: about twice the logarithm, where one by one it took a hundred."""
    shop = Shop(tmp_path, frozenset({37}), Death.CRASH)
    await shop.open_job(100, max_tries=2)
    shifts = 0
    while await shop.shift(100):
        shifts += 1
    ended = await shop.trials()
    assert [number for number, trial in ended.items() if trial.outcome is not Outcome.PASSED] == [37]
    assert shifts <= 2 * 7 + 3
    assert sum(trial.try_number for trial in ended.values()) <= 100 + 200 + 2 * 7, "each half runs half as many"


async def test_workers_that_others_kill_cost_nobody_a_process_of_its_own(tmp_path: Path) -> None:
    """As in a fleet of spot machines: whoever holds trial 1 is killed, but not because of it."""
    shop = Shop(tmp_path, frozenset({1}), Death.KILLED)
    await shop.open_job(12, max_tries=2)
    for _ in range(OUTSIDE_LOSSES_ALLOWED):
        await shop.shift(12)
    assert not [trial for trial in (await shop.trials()).values() if trial.suspected]
    assert {trial.tries_made for trial in (await shop.trials()).values()} == {0}


async def test_a_killer_that_is_always_alone_ends_after_the_attempts_of_its_job(tmp_path: Path) -> None:
    shop = Shop(tmp_path, frozenset({1}))
    await shop.open_job(1, max_tries=2)
    while await shop.shift(4):
        pass
    assert [(trial.outcome, trial.try_number) for trial in (await shop.trials()).values()] == [(Outcome.ERROR, 2)]


async def test_a_job_that_wants_one_try_gets_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path, frozenset({1}))
    await shop.open_job(3, max_tries=1)
    while await shop.shift(4):
        pass
    assert {trial.outcome for trial in (await shop.trials()).values()} == {Outcome.ERROR}
    assert {trial.try_number for trial in (await shop.trials()).values()} == {1}


async def test_the_lost_try_says_how_its_worker_died(tmp_path: Path) -> None:
    shop = Shop(tmp_path, frozenset({1}), Death.CRASH)
    await shop.open_job(1, max_tries=2)
    await shop.shift(1)
    [a_try] = await shop.store.trials.tries(1)
    assert a_try.result is not None and "crashed during try 1" in a_try.result.message
    assert [row.death for row in await shop.store.workers.all()] == [Death.CRASH]
