"""Calls of models and their sums."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seatrial.domain.model_calls.model_call import CallSums, CallUsage, CostBy, ModelCall
from seatrial.domain.result import Usage
from tests.properties import trying

AT = datetime(2026, 11, 16, tzinfo=UTC)


def call(**more: Any) -> ModelCall:
    return ModelCall(**{"at": AT, "model": "openai/gpt-5.2", "format": "chat", "status": 200, **more})


def test_a_line_of_the_record_is_read_as_it_was_written() -> None:
    one = call(usage=CallUsage(input_tokens=5, output_tokens=1), cost_usd=0.5, cost_by=CostBy.PROVIDER, error="x")
    assert ModelCall.model_validate_json(one.model_dump_json()) == one


def test_no_calls_have_no_cost() -> None:
    assert CallSums().result_usage == Usage(model_calls=0)


def test_sums() -> None:
    sums = reduce(
        CallSums.and_also,
        [
            call(usage=CallUsage(input_tokens=10, cached_tokens=4, output_tokens=2), cost_usd=0.25, waited_sec=1.5),
            call(usage=CallUsage(input_tokens=20, output_tokens=3, reasoning_tokens=1), cost_usd=0.5, tries=3),
            call(status=503, error="away", tries=2),
            call(status=None, tries=0, over_budget=True),
        ],
        CallSums(),
    )
    usage = CallUsage(input_tokens=30, cached_tokens=4, output_tokens=5, reasoning_tokens=1)
    assert sums == CallSums(
        calls=3, refused=1, tries=6, waited_sec=1.5, usage=usage, cost_usd=0.75, without_cost=1, over_budget=True
    )
    assert sums.result_usage == Usage(input_tokens=30, cached_tokens=4, output_tokens=5, cost_usd=0.75, model_calls=3)


counts = st.none() | st.integers(0, 10**9)
usages = st.builds(CallUsage, **dict.fromkeys(CallUsage.model_fields, counts))


@given(one=usages, other=usages, third=usages)
@trying(100)
def test_the_order_of_calls_does_not_matter(one: CallUsage, other: CallUsage, third: CallUsage) -> None:
    assert one.and_also(other) == other.and_also(one)
    assert one.and_also(other).and_also(third) == one.and_also(other.and_also(third))
    assert one.and_also(CallUsage()) == one


def test_what_is_told_later_replaces_what_was_told_before() -> None:
    first = CallUsage(input_tokens=10, output_tokens=1)
    assert first.updated_by(CallUsage(output_tokens=7)) == CallUsage(input_tokens=10, output_tokens=7)
    assert not CallUsage(input_tokens=10).is_known
    assert first.is_known
    assert first.total == 11


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValidationError):
        CallUsage(input_tokens=-1)
