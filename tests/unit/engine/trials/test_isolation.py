"""Trials that kill their worker, among others that do not: each killer is found, nobody else is blamed, and it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.isolation import LONGEST_WAIT, SHARED_LOSSES_ALLOWED, MayClaim, may_claim
from seatrial.domain.job import AgentSpec, JobSpec, RetryPolicy, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.ports.store import TrialFilter
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=1)
PASSED = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
TASK = TaskRef(name="hello", digest=f"sha256:{0:064x}")


class Shop:
    """Workers that live until a killer comes to them; everything that happens takes a second."""

    def __init__(self, folder: Path, killers: frozenset[int]) -> None:
        self.store = MemoryStore()
        self.now = NOW
        self._killers = killers
        self._dead: set[str] = set()
        self._hired = 0
        trust = LeaseTrust(lease_sec=30, heartbeat_sec=5, reap_sec=10)
        self._recovery = Recovery(self.store, LocalWakeUp(folder), self.clock, self._dead.__contains__, trust)

    def clock(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    async def open_job(self, trials: int, max_attempts: int) -> None:
        retry = RetryPolicy(max_attempts=max_attempts)
        spec = JobSpec(tasks=(TASK,), agents=(AgentSpec(name="oracle"),), attempts=trials, retry=retry)
        await self.store.jobs.create(spec, tuple(plan(spec)), self.clock())

    async def shift(self, capacity: int) -> bool:
        """One worker takes what it may have: a killer among that ends it, else all of it passes. False: no work."""
        worker = f"w{self._hired}"
        claimed = await self.store.trials.claim(worker, LEASE, capacity, self.clock())
        if any(trial.id in self._killers for trial in claimed):
            self._dead.add(worker)
            self._hired += 1
            await self._recovery.sweep()
        else:
            for trial in claimed:
                await self.store.trials.finish(trial.id, trial.try_number, PASSED, self.clock())
        return bool(claimed)

    async def trials(self) -> dict[int, Trial]:
        return {row.trial.id: row.trial async for row in self.store.trials.each(TrialFilter())}


@settings(max_examples=60, deadline=None)
@given(
    trials=st.integers(1, 25),
    capacity=st.integers(1, 12),
    max_attempts=st.integers(2, 4),
    killers=st.frozensets(st.integers(1, 25), max_size=6),
)
async def test_only_killers_are_blamed_and_it_comes_to_an_end(
    tmp_path_factory: pytest.TempPathFactory, trials: int, capacity: int, max_attempts: int, killers: frozenset[int]
) -> None:
    shop = Shop(tmp_path_factory.getbasetemp(), killers)
    await shop.open_job(trials, max_attempts)
    shifts = 0
    while await shop.shift(capacity):
        shifts += 1
    ended = await shop.trials()
    assert {trial.state for trial in ended.values()} == {TrialState.ENDED}
    blamed = {number for number, trial in ended.items() if trial.outcome is Outcome.ERROR}
    assert blamed == {number for number in killers if number <= trials}
    assert all(ended[number].cause is Cause.WORKER_LOST for number in blamed)
    assert all(trial.try_number <= max_attempts + SHARED_LOSSES_ALLOWED for trial in ended.values())
    assert shifts <= trials * (max_attempts + SHARED_LOSSES_ALLOWED)


async def test_a_killer_that_is_always_alone_ends_after_the_attempts_of_its_job(tmp_path: Path) -> None:
    shop = Shop(tmp_path, frozenset({1}))
    await shop.open_job(1, max_attempts=2)
    while await shop.shift(4):
        pass
    assert [(trial.outcome, trial.try_number) for trial in (await shop.trials()).values()] == [(Outcome.ERROR, 2)]


async def test_a_job_that_wants_one_try_gets_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path, frozenset({1}))
    await shop.open_job(3, max_attempts=1)
    while await shop.shift(4):
        pass
    assert {trial.outcome for trial in (await shop.trials()).values()} == {Outcome.ERROR}
    assert {trial.try_number for trial in (await shop.trials()).values()} == {1}


def a_suspect(state: TrialState = TrialState.QUEUED, worker: str | None = None) -> Trial:
    return Trial(
        id=1,
        job_id=1,
        task=TASK,
        agent_index=0,
        agent="oracle",
        model=None,
        attempt=1,
        state=state,
        worker=worker,
        shared_losses=SHARED_LOSSES_ALLOWED,
        not_before=NOW,
        created_at=NOW,
    )


@pytest.mark.parametrize(
    ("holds", "suspects", "waited", "expected"),
    [
        (0, [], 0, MayClaim.UNSUSPECTED),
        (3, [], 0, MayClaim.UNSUSPECTED),
        (0, [a_suspect()], 0, MayClaim.UNSUSPECTED_FIRST),
        (3, [a_suspect()], 0, MayClaim.UNSUSPECTED),
        (0, [a_suspect()], 1, MayClaim.SUSPECT),
        (3, [a_suspect()], 1, MayClaim.NOTHING),
        (1, [a_suspect(TrialState.RUNNING, "mine")], 0, MayClaim.NOTHING),
        (1, [a_suspect(TrialState.RUNNING, "another's")], 1, MayClaim.UNSUSPECTED),
    ],
)
def test_what_a_worker_may_have(holds: int, suspects: list[Trial], waited: int, expected: MayClaim) -> None:
    assert may_claim("mine", holds, suspects, NOW + waited * LONGEST_WAIT) is expected
