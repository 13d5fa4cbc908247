"""The first difference of two requests: none exactly if their digests are equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.gateway.wire import digest_of, first_difference, read_object
from tests.unit.gateway.wire.test_replay import LASTING, VOLATILE

IDS = ("Chunk ID: 8feead\nok", "Chunk ID: 118732\nok")
NAMES = st.sampled_from(["messages", "role", "id", "tool_call_id", "metadata", "content", "output", "x"])
TEXTS = st.sampled_from(
    [*(text for pair in (*VOLATILE.values(), *LASTING.values()) for text in pair), *IDS, "", "a\nb", "ä"]
)
VALUES = st.recursive(
    TEXTS | st.integers(0, 3) | st.just(1763300000) | st.booleans() | st.none() | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=4)


def difference(one: Any, other: Any) -> Any:
    return first_difference(read_object(json.dumps(one).encode()), read_object(json.dumps(other).encode()))


@given(BODIES, BODIES)
def test_there_is_one_exactly_if_the_digests_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    digests = {digest_of(read_object(json.dumps(each).encode())) for each in (one, other)}
    assert (difference(one, other) is None) == (len(digests) == 1)


@given(BODIES)
def test_a_request_does_not_differ_from_itself(one: dict[str, Any]) -> None:
    assert difference(one, one) is None


@pytest.mark.parametrize(("one", "other"), VOLATILE.values(), ids=VOLATILE.keys())
def test_volatile_parts_are_no_difference(one: str, other: str) -> None:
    assert difference({"input": [one]}, {"input": [other]}) is None


def test_the_conversation_is_looked_at_first() -> None:
    found = difference({"a": 1, "messages": ["x"], "z": 1}, {"a": 2, "messages": ["y"], "z": 2})
    assert found.place == "messages[0]"


def test_control_characters_are_escaped() -> None:
    found = difference({"input": "a"}, {"input": "\x1b[31m"})
    assert "\x1b" not in str(found)
