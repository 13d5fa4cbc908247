"""The one function that changes a trial, tried from every state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.task import TaskRef
from seatrial.domain.trial import (
    CancelAsked,
    Cause,
    Claimed,
    Ended,
    GivenBack,
    LeaseRenewed,
    Outcome,
    Phase,
    Retried,
    Trial,
    TrialEvent,
    TrialState,
    TryAgain,
    further_attempt,
    transition,
)
from seatrial.errors import Conflict, StaleTry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=30)


def queued() -> Trial:
    task = TaskRef(name="answer-file", digest="sha256:0")
    return Trial(id=1, job_id=1, task=task, agent_index=0, agent="oracle", model=None, attempt=1, created_at=NOW)


def running() -> Trial:
    return transition(queued(), Claimed(worker="w1", lease=LEASE), NOW)


def test_a_claim_starts_the_first_attempt() -> None:
    trial = running()
    assert (trial.state, trial.try_number, trial.worker) == (TrialState.RUNNING, 1, "w1")
    assert trial.lease_until == NOW + LEASE


def test_a_running_trial_cannot_be_claimed() -> None:
    with pytest.raises(Conflict):
        transition(running(), Claimed(worker="w2", lease=LEASE), NOW)


def test_an_end_needs_the_current_attempt() -> None:
    ended = transition(running(), Ended(try_number=1, outcome=Outcome.PASSED), NOW)
    assert (ended.state, ended.outcome, ended.lease_until) == (TrialState.ENDED, Outcome.PASSED, None)
    with pytest.raises(StaleTry):
        transition(running(), Ended(try_number=2, outcome=Outcome.PASSED), NOW)
    with pytest.raises(StaleTry):
        transition(ended, Ended(try_number=1, outcome=Outcome.FAILED), NOW)


def test_a_worker_presumed_dead_cannot_overwrite_its_successor() -> None:
    requeued = transition(running(), TryAgain(try_number=1), NOW)
    successor = transition(requeued, Claimed(worker="w2", lease=LEASE), NOW)
    with pytest.raises(StaleTry):
        transition(successor, Ended(try_number=1, outcome=Outcome.PASSED), NOW)
    assert transition(successor, Ended(try_number=2, outcome=Outcome.FAILED), NOW).outcome is Outcome.FAILED


def test_renewing_moves_the_lease_and_the_phase() -> None:
    renewed = transition(running(), LeaseRenewed(try_number=1, lease=LEASE, phase=Phase.VERIFY), NOW + LEASE)
    assert (renewed.lease_until, renewed.phase) == (NOW + 2 * LEASE, Phase.VERIFY)


def test_another_try_waits_for_its_delay() -> None:
    again = transition(running(), TryAgain(try_number=1, delay=timedelta(seconds=5)), NOW)
    assert (again.state, again.not_before, again.tries_made) == (TrialState.QUEUED, NOW + timedelta(seconds=5), 1)


def test_a_trial_given_back_has_lost_no_attempt() -> None:
    back = transition(running(), GivenBack(try_number=1), NOW)
    assert (back.state, back.try_number, back.tries_made) == (TrialState.QUEUED, 1, 0)


def test_cancelling_ends_what_waits_and_tells_what_runs() -> None:
    assert transition(queued(), CancelAsked(), NOW).outcome is Outcome.CANCELLED
    told = transition(running(), CancelAsked(), NOW)
    assert (told.state, told.cancel_requested) == (TrialState.RUNNING, True)
    assert transition(told, TryAgain(try_number=1), NOW).outcome is Outcome.CANCELLED
    assert transition(told, GivenBack(try_number=1), NOW).outcome is Outcome.CANCELLED


def test_cancelling_what_has_ended_changes_nothing() -> None:
    ended = transition(running(), Ended(try_number=1, outcome=Outcome.ERROR, cause=Cause.LLM), NOW)
    assert transition(ended, CancelAsked(), NOW) == ended


def test_a_retried_trial_has_its_full_allowance_again() -> None:
    ended = transition(running(), Ended(try_number=1, outcome=Outcome.ERROR, cause=Cause.SANDBOX), NOW)
    fresh = transition(ended, Retried(), NOW)
    assert (fresh.state, fresh.outcome, fresh.cause, fresh.tries_made) == (TrialState.QUEUED, None, None, 0)
    assert transition(fresh, Claimed(worker="w", lease=LEASE), NOW).try_number == 2


def test_only_ended_trials_are_retried() -> None:
    with pytest.raises(Conflict):
        transition(queued(), Retried(), NOW)


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FAILED])
def test_a_graded_trial_is_never_replaced(outcome: Outcome) -> None:
    ended = transition(running(), Ended(try_number=1, outcome=outcome), NOW)
    with pytest.raises(Conflict, match="final"):
        transition(ended, Retried(), NOW)
    further = further_attempt(ended, 6)
    assert (further.attempt, further.reruns, further.task) == (6, ended.id, ended.task)


def test_only_graded_trials_get_a_further_attempt() -> None:
    error = transition(running(), Ended(try_number=1, outcome=Outcome.ERROR, cause=Cause.LLM), NOW)
    for trial in (queued(), running(), error):
        with pytest.raises(Conflict):
            further_attempt(trial, 2)


EVENTS = st.one_of(
    st.just(Claimed(worker="w", lease=LEASE)),
    st.builds(LeaseRenewed, try_number=st.integers(0, 4), lease=st.just(LEASE)),
    st.builds(Ended, try_number=st.integers(0, 4), outcome=st.sampled_from(Outcome)),
    st.builds(TryAgain, try_number=st.integers(0, 4), delay=st.just(timedelta(seconds=1))),
    st.builds(GivenBack, try_number=st.integers(0, 4)),
    st.just(CancelAsked()),
    st.just(Retried()),
)


@given(st.lists(EVENTS, max_size=30))
def test_no_sequence_of_events_makes_an_impossible_trial(events: list[TrialEvent]) -> None:
    trial = queued()
    for event in events:
        before = trial
        try:
            trial = transition(trial, event, NOW)
        except Conflict:
            continue
        assert trial.try_number >= before.try_number
        assert 0 <= trial.tries_base <= trial.try_number
        assert (trial.outcome is not None) == (trial.state is TrialState.ENDED)
        assert (trial.lease_until is not None) == (trial.state is TrialState.RUNNING)
        assert (trial.ended_at is not None) == (trial.state is TrialState.ENDED)
