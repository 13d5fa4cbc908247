"""LiteLLM's list of prices."""

from __future__ import annotations

import pytest

from seatrial.adapters.model_list import ListedPrices, listed_models
from seatrial.domain.model_calls.model_call import CallUsage

PRICES = ListedPrices()
LONG = CallUsage(input_tokens=250_000, cached_tokens=50_000, output_tokens=1_000)


@pytest.mark.parametrize("name", ["gpt-4o", "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"])
def test_known_models_have_a_price(name: str) -> None:
    price = PRICES[name]
    assert 0 < price.rates.input < price.rates.output < 0.01


def test_a_model_has_the_same_price_with_its_provider() -> None:
    assert PRICES["openai/gpt-4o"] == PRICES["gpt-4o"]


@pytest.mark.parametrize("name", ["gpt-4o-of-nobody", "anthropic/gpt-4o", "vllm/gpt-4o", "sample_spec", "", "dall-e-3"])
def test_others_have_none(name: str) -> None:
    assert name not in PRICES


def test_every_price_can_be_computed() -> None:
    costs = [PRICES[name].cost_of(LONG) for name in PRICES]
    assert len(costs) > 1_000
    assert all(cost is not None and cost >= 0 for cost in costs)


def test_the_names_are_those_of_the_list() -> None:
    assert "gpt-4o" in listed_models()
    assert "sample_spec" not in listed_models()
