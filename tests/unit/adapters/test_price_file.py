"""The operator's own prices win over LiteLLM's, and whatever is wrong with their file is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.adapters.model_list import listed_names
from seatrial.adapters.model_prices import ModelPrices
from seatrial.adapters.price_file import read_price_file
from seatrial.domain.model_calls.model_call import CallUsage, CostBy
from seatrial.errors import SetupProblem

JSON = '{"hosted_vllm/mine": {"input_cost_per_token": 1e-7, "output_cost_per_token": 4e-7, "mode": "chat"}}'
TOML = """
["openai/gpt-4o"]
input_cost_per_token = 1
output_cost_per_token = 2
cache_read_input_token_cost = 0.5

["openai/free-of-charge"]
input_cost_per_token = 0
output_cost_per_token = 0
"""
USED = CallUsage(input_tokens=10, cached_tokens=4, output_tokens=1)


def file(folder: Path, text: str, name: str = "prices.json") -> Path:
    place = folder / name
    place.write_text(text)
    return place


def test_a_model_that_nobody_lists_gets_a_price(tmp_path: Path) -> None:
    prices = ModelPrices(file(tmp_path, JSON))
    found = prices.of("hosted_vllm/mine")
    assert found is not None and found.by is CostBy.OPERATOR and found.price.rates.output == 4e-7
    assert not ModelPrices().has_price("hosted_vllm/mine") and not prices.has_price("hosted_vllm/other")
    other = prices.of("openai/gpt-4o")
    assert other is not None and other.by is CostBy.TABLE


def test_the_operators_price_wins_under_every_name(tmp_path: Path) -> None:
    prices = ModelPrices(file(tmp_path, TOML, "prices.toml"))
    for name in ("openai/gpt-4o", "gpt-4o", "openrouter/openai/gpt-4o"):
        found = prices.of(name)
        assert found is not None and found.by is CostBy.OPERATOR and found.price.cost_of(USED) == 6 + 4 * 0.5 + 2
    free = prices.of("openai/free-of-charge")
    assert free is not None and free.price.free


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("{", "prices.json", "no JSON"),
        ("a = ", "prices.toml", "no TOML"),
        ("[]", "prices.json", "no table of models"),
        ("{}", "prices.json", "no table of models"),
        ('{"a/b": 3}', "prices.json", "'a/b' is no table"),
        ('{"a/b": {"input_cost_per_token": 1}}', "prices.json", "needs output_cost_per_token"),
        ('{"a/b": {"mode": "chat"}}', "prices.json", "needs input_cost_per_token and output_cost_per_token"),
        ('{"a/b": {"input_cost_per_token": -1, "output_cost_per_token": 1}}', "prices.json", "must not be -1"),
        ('{"a/b": {"input_cost_per_token": NaN, "output_cost_per_token": 1}}', "prices.json", "must not be nan"),
        ('{"a/b": {"input_cost_per_token": "1", "output_cost_per_token": 1}}', "prices.json", "needs input_cost"),
        ('{"a/b": {"input_cost_per_tokens": 1}}', "prices.json", "Did you mean 'input_cost_per_token'?"),
        (
            '{"a/b": {"input_cost_per_token": 1, "output_cost_per_token": 1, "cache_read_cost": 1}}',
            "prices.json",
            "no name of LiteLLM's list",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_free(tmp_path: Path, text: str, name: str, said: str) -> None:
    with pytest.raises(SetupProblem) as problem:
        ModelPrices(file(tmp_path, text, name)).load()
    assert said in f"{problem.value} {problem.value.fix}" and "SEATRIAL_MODEL_PRICES_FILE" in problem.value.fix


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="No such file"):
        read_price_file(tmp_path / "prices.json")


def test_an_entry_of_litellm_can_be_copied() -> None:
    assert {"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "mode"} <= listed_names()
