"""The operator's own prices of models, from a JSON or TOML file.

An entry has LiteLLM's names, so it can be copied from LiteLLM's list. Whatever is wrong with the file is an error: a
price that is silently left out would make calls free.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from seatrial.domain.agents.catalogue import provider_of
from seatrial.domain.likeness import did_you_mean
from seatrial.domain.model_calls.prices import Price, price_from
from seatrial.errors import SetupProblem

_NEEDED = ("input_cost_per_token", "output_cost_per_token")
_LONGEST = 16 * 1024 * 1024
_SETTING = "SEATRIAL_MODEL_PRICES_FILE"


def read_price_file(path: Path, known_names: Collection[str] = ()) -> dict[str, Price]:
    """The prices by model, each with and without its provider. Raises ``SetupProblem``.

    ``known_names`` are the names that LiteLLM's own entries have; any other one is taken for a typing error."""
    content = _parsed(path)
    if not isinstance(content, Mapping) or not content:
        raise _problem(path, "it is no table of models")
    prices: dict[str, Price] = {}
    for model, entry in content.items():
        prices[model] = _price(path, model, entry, known_names)
    for model, price in list(prices.items()):
        for other in _other_names(model):
            prices.setdefault(other, price)
    return prices


def _parsed(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        raise _problem(path, f"{error.strerror}") from error
    if len(text) > _LONGEST:
        raise _problem(path, "it is longer than 16 MB")
    try:
        return tomllib.loads(text.decode()) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:  # both parsers say in which line
        raise _problem(path, f"it is no {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}") from error


def _price(path: Path, model: str, entry: Any, known_names: Collection[str]) -> Price:
    if not isinstance(entry, Mapping):
        raise _problem(path, f"the entry of {model!r} is no table of prices")
    for name, value in entry.items():
        if known_names and name not in known_names:
            raise _problem(
                path, f"{model!r} has {name!r}, which is no name of LiteLLM's list", did_you_mean(name, known_names)
            )
        if "_cost" in name and isinstance(value, int | float) and not _is_rate(value):
            raise _problem(path, f"{name!r} of {model!r} must not be {value!r}")
    missing = [name for name in _NEEDED if not _is_rate(entry.get(name))]
    price = price_from(entry)
    if price is None:
        raise _problem(path, f"{model!r} needs {' and '.join(missing)}, in dollars for one token")
    return price


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _other_names(model: str) -> list[str]:
    """``gpt-5`` is ``openai/gpt-5``, and the other way round."""
    provider, slash, name = model.partition("/")
    if not slash:
        known = provider_of(model)
        return [f"{known}/{model}"] if known else []
    return [name] if provider_of(name) == provider else []


def _problem(path: Path, what: str, hint: str = "") -> SetupProblem:
    fix = f"{hint} Correct the file, or unset {_SETTING}.".lstrip()
    return SetupProblem(f"The prices in {path} cannot be used: {what}.", fix=fix)
