"""Specs as they are stored: workers of the version before read those that ask for nothing new."""

from __future__ import annotations

import json

from seatrial.adapters.store_sql.specs import JobSpecs, document_of
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.model_calls.record import Record
from tests.contracts.store.samples import a_spec


def test_a_spec_without_a_budget_does_not_name_it() -> None:
    spec = a_spec()
    assert {"budget", "record"}.isdisjoint(json.loads(document_of(spec)))
    assert JobSpecs().learn(1, document_of(spec)) == spec


def test_a_budget_is_kept() -> None:
    spec = a_spec().model_copy(update={"budget": Budget(trial=Cap(calls=3))})
    assert JobSpecs().learn(1, document_of(spec)).budget == Budget(trial=Cap(calls=3))


def test_a_full_record_is_kept() -> None:
    spec = a_spec().model_copy(update={"record": Record.FULL})
    assert JobSpecs().learn(1, document_of(spec)).record is Record.FULL
