"""What calls cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.model_calls.model_call import CallUsage, CostBy
from seatrial.domain.model_calls.prices import Price, Rates, cost_of, price_from, price_of
from tests.properties import trying

PLAIN = {"input_cost_per_token": 2.0, "output_cost_per_token": 10.0}
FULL = {
    **PLAIN,
    "cache_read_input_token_cost": 0.5,
    "cache_creation_input_token_cost": 3.0,
    "cache_creation_input_token_cost_above_1hr": 5.0,
    "output_cost_per_reasoning_token": 20.0,
}


def price(**entry: Any) -> Price:
    found = price_from(entry)
    assert found is not None
    return found


def cost(entry: dict[str, Any], *ways: str, **tokens: int) -> float | None:
    return price(**entry).cost_of(CallUsage(**tokens), ways)


@pytest.mark.parametrize(
    ("listed", "expected"), [(16384, 16384), (8192.0, 8192), (None, None), ("4096", None), (0, None), (10**20, None)]
)
def test_a_list_may_say_how_long_answers_are(listed: Any, expected: int | None) -> None:
    assert price(**PLAIN, max_output_tokens=listed).longest_output == expected


class TestKindsOfTokens:
    def test_plain(self) -> None:
        assert cost(PLAIN, input_tokens=3, output_tokens=1) == 16.0

    def test_each_kind_has_its_own_rate(self) -> None:
        tokens = {"input_tokens": 100, "cached_tokens": 50, "cache_write_tokens": 20, "long_cache_write_tokens": 5}
        made = {"output_tokens": 10, "reasoning_tokens": 4}
        expected = 30 * 2 + 50 * 0.5 + 15 * 3 + 5 * 5 + 6 * 10 + 4 * 20
        assert cost(FULL, **tokens, **made) == expected

    def test_a_kind_without_a_rate_costs_as_usual(self) -> None:
        tokens = {
            "input_tokens": 10,
            "cached_tokens": 5,
            "cache_write_tokens": 5,
            "output_tokens": 2,
            "reasoning_tokens": 2,
        }
        assert cost(PLAIN, **tokens) == 40.0

    def test_unknown_usage_has_no_cost(self) -> None:
        assert price(**PLAIN).cost_of(CallUsage(input_tokens=5)) is None
        assert price(**PLAIN).cost_of(CallUsage()) is None

    @given(st.builds(CallUsage, **dict.fromkeys(CallUsage.model_fields, st.integers(0, 1000))))
    @trying(200)
    def test_parts_never_cost_more_than_their_sum_at_the_highest_rate(self, usage: CallUsage) -> None:
        """A provider that tells more cached than read tokens makes no call cheaper than nothing."""
        paid = price(**FULL).cost_of(usage)
        assert paid is not None
        assert 0 <= paid <= 5 * (usage.input_tokens or 0) + 20 * (usage.output_tokens or 0)


class TestDearerWays:
    ENTRY = {
        **FULL,
        "input_cost_per_token_priority": 4.0,
        "output_cost_per_token_priority": 20.0,
        "input_cost_per_token_flex": 1.0,
        "output_cost_per_token_flex": 5.0,
        "provider_specific_entry": {"fast": 6.0, "us": 1.1, "note": "x"},
    }

    @pytest.mark.parametrize(
        ("ways", "expected"),
        [
            ((), 30.0),
            (("default",), 30.0),
            (("standard",), 30.0),
            (("priority",), 60.0),
            (("flex",), 15.0),
            (("fast",), 180.0),
            (("fast", "us"), 198.0),
        ],
    )
    def test_have_their_price(self, ways: tuple[str, ...], expected: float) -> None:
        assert cost(self.ENTRY, *ways, input_tokens=10, output_tokens=1) == pytest.approx(expected)

    def test_without_a_price_have_no_cost(self) -> None:
        assert cost(self.ENTRY, "ultrafast", input_tokens=10, output_tokens=1) is None
        assert cost(PLAIN, "priority", input_tokens=10, output_tokens=1) is None

    def test_a_cheaper_way_without_a_price_costs_as_usual(self) -> None:
        assert cost(PLAIN, "flex", input_tokens=10, output_tokens=1) == 30.0


class TestLongPrompts:
    ENTRY = {
        **FULL,
        "input_cost_per_token_above_200k_tokens": 4.0,
        "output_cost_per_token_above_200k_tokens": 15.0,
        "cache_read_input_token_cost_above_200k_tokens": 1.0,
        "input_cost_per_token_above_500k_tokens": 8.0,
    }

    def test_cost_more_as_a_whole(self) -> None:
        assert cost(self.ENTRY, input_tokens=200_000, output_tokens=1) == 400_010.0
        assert cost(self.ENTRY, input_tokens=200_001, cached_tokens=1, output_tokens=1) == 800_016.0
        assert cost(self.ENTRY, input_tokens=500_001, output_tokens=1) == 4_000_018.0

    def test_cost_the_dearer_rate_where_a_tier_says_nothing_of_them(self) -> None:
        tiers = {"input_cost_per_token_priority": 3.0, "output_cost_per_token_priority": 30.0}
        tiers |= {"input_cost_per_token_flex": 1.0, "output_cost_per_token_flex": 5.0}
        entry = {**self.ENTRY, **tiers}
        assert cost(entry, "priority", input_tokens=200_001, output_tokens=1) == 800_034.0
        assert cost(entry, "flex", input_tokens=200_001, output_tokens=1) == 800_019.0
        assert cost(entry, "flex", input_tokens=200_000, output_tokens=1) == 200_005.0

    def test_reasoning_at_the_price_of_output_follows_it(self) -> None:
        entry = {**self.ENTRY, "output_cost_per_reasoning_token": 10.0}
        assert cost(entry, input_tokens=200_001, output_tokens=2, reasoning_tokens=1) == 800_034.0

    def test_as_a_list_of_ranges(self) -> None:
        ranges = [
            {"range": [0, 256000.0], **PLAIN},
            {"range": [256000.0, 1000000.0], "input_cost_per_token": 4.0, "output_cost_per_token": 20.0},
        ]
        assert cost({"tiered_pricing": ranges}, input_tokens=256_000, output_tokens=0) == 512_000.0
        assert cost({"tiered_pricing": ranges}, input_tokens=256_001, output_tokens=1) == 1_024_024.0


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"input_cost_per_token": 1.0},
        {"output_cost_per_token": 1.0},
        {"input_cost_per_second": 1.0, "output_cost_per_image": 2.0},
        {**PLAIN, "input_cost_per_token": "2"},
        {**PLAIN, "input_cost_per_token": -1},
        {**PLAIN, "input_cost_per_token": float("nan")},
        {**PLAIN, "input_cost_per_token": float("inf")},
        {**PLAIN, "output_cost_per_token": True},
        {"tiered_pricing": []},
        {"tiered_pricing": [{"range": ["a"]}]},
        {"tiered_pricing": [{}]},
        {"tiered_pricing": [5]},
        {"tiered_pricing": [{"range": 5, **PLAIN}]},
        {"tiered_pricing": "x"},
    ],
)
def test_what_is_not_sold_by_tokens_has_no_price(entry: dict[str, Any]) -> None:
    assert price_from(entry) is None


class TestTables:
    CHEAP, DEAR = price(**PLAIN), price(input_cost_per_token=9, output_cost_per_token=9)

    def test_the_operators_comes_first(self) -> None:
        tables = [(CostBy.OPERATOR, {"openai/a": self.DEAR}), (CostBy.TABLE, {"openai/a": self.CHEAP, "b": self.CHEAP})]
        found, other = price_of("openai/a", tables), price_of("b", tables)
        assert found is not None
        assert other is not None
        assert (found.by, found.price) == (CostBy.OPERATOR, self.DEAR)
        assert other.by is CostBy.TABLE
        assert price_of("c", tables) is None

    def test_a_reseller_at_list_price_is_found_by_the_maker(self) -> None:
        tables = [(CostBy.TABLE, {"openai/a": self.CHEAP})]
        assert price_of("openrouter/openai/a", tables) is not None
        assert price_of("vllm/openai/a", tables) is None

    def test_the_providers_figure_wins(self) -> None:
        usage = CallUsage(input_tokens=1, output_tokens=1)
        named = price_of("a", [(CostBy.TABLE, {"a": self.CHEAP})])
        told = cost_of(usage, named, 0.25)
        assert (told.dollars, told.by) == (0.25, CostBy.PROVIDER)
        free = cost_of(usage, named, 0.0)
        assert (free.dollars, free.by) == (0.0, CostBy.PROVIDER)
        listed = cost_of(usage, named)
        assert (listed.dollars, listed.by) == (12.0, CostBy.TABLE)
        unknown = cost_of(usage, None)
        assert (unknown.dollars, unknown.by) == (None, None)

    def test_free_models_are_known(self) -> None:
        assert Price(rates=Rates(input=0, output=0)).free
        assert not self.CHEAP.free
