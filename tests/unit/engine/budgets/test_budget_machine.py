"""Any course of calls, deaths, pauses and outages keeps the caps, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from seatrial.domain.model_calls.budget import NOTHING, Amount, Budget, Cap, Scope
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.budgets.trial_budget import BudgetUnknown, Refused, Reservation, TrialBudget
from seatrial.errors import StoreUnavailable
from seatrial.testing.memory_store.budgets import MemoryBudgets
from tests.properties import trying
from tests.virtual_time import VirtualLoop

CAP = 1000
LEASE = timedelta(seconds=20)
TRIALS = 4
JOB = Scope.of_job(1)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = Budget(job=Cap(tokens=CAP), trial=Cap(tokens=CAP // 2))


class Store(MemoryBudgets):
    """Loses requests or answers when it is told to."""

    loses_request = False
    loses_answer = False

    async def exchange(self, reports: Sequence[SliceReport], lease: timedelta, now: datetime) -> dict[str, SliceGrant]:
        if self.loses_request:
            raise StoreUnavailable("The request was lost.")
        answer = await super().exchange(reports, lease, now)
        if self.loses_answer:
            raise StoreUnavailable("The answer was lost.")
        return answer


@dataclass(eq=False)
class Worker:
    budgets: Budgets
    trials: list[TrialBudget]
    is_alive: bool = True
    calls: list[Call] = field(default_factory=list)
    spent: int = 0
    """What the provider charged for calls that have ended."""
    is_lapsed: bool = False


@dataclass(eq=False)
class Call:
    worker: Worker
    reservation: Reservation
    expected: int
    used: int = 0

    @property
    def is_under_way(self) -> bool:
        return self.worker.is_alive and self in self.worker.calls

    @property
    def most(self) -> int:
        return self.reservation.most.tokens


class BudgetMachine(RuleBasedStateMachine):
    workers = Bundle("workers")
    calls = Bundle("calls")

    @initialize()
    def begin(self) -> None:
        self.loop = VirtualLoop()
        self.store = Store()
        self.all: list[Worker] = []
        self.slack = 0
        """What the store cannot know: spent by workers that were silent, or died, before they could report it."""
        self.outages: list[tuple[float, float]] = []
        self.away_since: float | None = None

    def run(self, task: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(task)

    def clock(self) -> datetime:
        return EPOCH + timedelta(seconds=self.loop.time())

    @rule(target=workers)
    @precondition(lambda self: len(self.all) < 6)
    def hire(self) -> Worker:
        budgets = Budgets(self.store, f"w{len(self.all)}", self.clock, LEASE, elapsed=self.loop.time)
        first = TRIALS * len(self.all)
        worker = Worker(budgets, [TrialBudget(budgets, first + n, 1, 1, BUDGET) for n in range(TRIALS)])
        self.all.append(worker)
        return worker

    @rule(
        target=calls,
        worker=workers,
        trial=st.integers(0, TRIALS - 1),
        expected=st.integers(1, 300),
        more=st.integers(0, 800),
        less=st.integers(0, 299),
    )
    def call(self, worker: Worker, trial: int, expected: int, more: int, less: int) -> Call | None:
        if not worker.is_alive:
            return None
        found = self.run(
            worker.trials[trial].reserve(
                Amount(tokens=expected),
                least=Amount(tokens=max(1, expected - less)),
                most=Amount(tokens=expected + more),
                patience_sec=0.6,
            )
        )
        if isinstance(found, Refused):
            return None
        call = Call(worker, found, min(expected, found.most.tokens))
        worker.calls.append(call)
        return call

    @rule(call=consumes(calls), part=st.floats(0, 1))
    def answer(self, call: Call | None, part: float) -> None:
        if call is not None and call.is_under_way:
            price = round(part * call.most)
            call.reservation.settle(Amount(tokens=price))
            self.ended(call, price)

    @rule(call=calls, part=st.floats(0, 3))
    def stream(self, call: Call | None, part: float) -> None:
        """Its answer comes in pieces, and is cut at the cap."""
        if call is not None and call.is_under_way:
            used = max(call.used, round(part * call.expected))
            try:
                goes_on = call.reservation.stretch(Amount(tokens=used))
            except BudgetUnknown:
                goes_on = False
            if goes_on:
                assert call.most >= used
                call.used = used
            else:
                call.reservation.settle(Amount(tokens=call.most))
                self.ended(call, call.most)

    @rule(call=consumes(calls), reached=st.booleans())
    def break_off(self, call: Call | None, reached: bool) -> None:
        if call is not None and call.is_under_way:
            if reached:
                call.reservation.settle_unknown()
            else:
                call.reservation.release()
            self.ended(call, max(call.expected, call.used) if reached else 0)

    def ended(self, call: Call, price: int) -> None:
        call.worker.spent += price
        call.worker.calls.remove(call)

    @rule(worker=workers)
    def sync(self, worker: Worker) -> None:
        if worker.is_alive:
            with suppress(StoreUnavailable):
                self.run(worker.budgets.sync())
            self.note_lapses()

    @rule(silent=st.none() | workers)
    def others_sync_for_a_lease(self, silent: Worker | None) -> None:
        for _ in range(22):
            self.pass_time(2.0)
            for worker in self.all:
                if worker is not silent:
                    self.sync(worker)

    @rule(worker=workers, price=st.integers(50, 300))
    def spend(self, worker: Worker, price: int) -> None:
        """All its trials, one call after the other, until the cap."""
        for number in range(20):
            if (call := self.call(worker, number % TRIALS, price, 0, 299)) is None:
                return
            self.answer(call, 1.0)

    @rule(seconds=st.sampled_from([0.5, 2.0, 4.0, 6.0, 15.0, 21.0, 90.0]))
    def pass_time(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(request=st.booleans(), answer=st.booleans())
    def outage(self, request: bool, answer: bool) -> None:
        now = self.loop.time()
        if self.away_since is not None:
            self.outages.append((self.away_since, now))
        self.away_since = now if request else None
        self.store.loses_request, self.store.loses_answer = request, answer

    @rule(worker=workers)
    def kill(self, worker: Worker) -> None:
        if not worker.is_alive:
            return
        worker.is_alive = False
        self.slack += 0 if worker.is_lapsed else self.unknown(worker)

    def unknown(self, worker: Worker) -> int:
        """What the worker may have spent beyond what the store counts for it."""
        known = sum(each.reported.tokens + each.in_flight.tokens for each in self.slices_of(worker))
        return max(0, worker.spent + sum(call.most for call in worker.calls) - known)

    def note_lapses(self) -> None:
        """A worker that was silent for a lease is taken for dead. Its calls go on, and it begins none."""
        now, lease = self.loop.time(), LEASE.total_seconds()
        for worker in self.all:
            before, worker.is_lapsed = worker.is_lapsed, any(each.lapsed for each in self.slices_of(worker))
            if worker.is_alive and worker.is_lapsed and not before:
                self.slack += self.unknown(worker)
                away = sum(max(0.0, end - max(begin, now - lease)) for begin, end in self.outages)
                assert away <= lease / 2 + 1, "it could not have reported"

    def slices_of(self, worker: Worker) -> list[Any]:
        state = self.store.states.get(JOB)
        name = f"{worker.budgets._holder}."
        return [each for each in state.slices if each.holder.startswith(name)] if state is not None else []

    @invariant()
    def never_over_the_cap(self) -> None:
        """Even if every call under way costs the most that it was allowed."""
        spent = sum(worker.spent for worker in self.all)
        under_way = sum(call.most for worker in self.all for call in worker.calls)
        self.note_lapses()
        assert spent + under_way <= CAP + self.slack

    @invariant()
    def slices_hold_what_nobody_else_has(self) -> None:
        state = self.store.states.get(JOB)
        if state is not None and not self.slack:
            assert state.spent.tokens + sum(each.room.tokens for each in state.slices) <= CAP

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            self.nothing_is_left_behind()
        finally:
            self.loop.close()

    def nothing_is_left_behind(self) -> None:
        """Once all calls have ended, and dead workers are known to be dead, the rest of the cap can be spent."""
        self.store.loses_request = self.store.loses_answer = False
        known = 0
        for worker in self.all:
            if worker.is_alive:
                for call in list(worker.calls):
                    call.reservation.settle(Amount(tokens=call.expected))
                    self.ended(call, call.expected)
                for trial in worker.trials:
                    trial.close()
                self.run(worker.budgets.leave())
                known += worker.spent
            else:
                known += sum(each.reported.tokens + each.in_flight.tokens for each in self.slices_of(worker))
        heir = self.hire_heir()
        for _ in range(25):
            self.pass_time(2.0)
            self.run(heir.sync())
        counted = self.run(self.store.spending([JOB]))[JOB.name].spent.tokens
        assert counted == known
        left = CAP - counted
        if left > 0:
            with TrialBudget(heir, 1000, 1, 1, Budget(job=BUDGET.job)) as budget:
                found = self.run(budget.reserve(Amount(tokens=left), patience_sec=3.0))
                assert isinstance(found, Reservation) and found.most == Amount(tokens=left)
                found.release()
        assert heir.open_slice(JOB, BUDGET.job.limits, 0).promised == NOTHING

    def hire_heir(self) -> Budgets:
        heir = Budgets(self.store, "heir", self.clock, LEASE, elapsed=self.loop.time)
        with TrialBudget(heir, 1000, 1, 1, Budget(job=BUDGET.job)) as budget:
            found = self.run(budget.reserve(Amount(tokens=1), patience_sec=0.3))
            if isinstance(found, Reservation):
                found.release()
        heir.open_slice(JOB, BUDGET.job.limits, 1000)
        return heir


def test_any_course_of_events_keeps_the_caps() -> None:
    run_state_machine_as_test(BudgetMachine, settings=settings(trying(60), stateful_step_count=40))
