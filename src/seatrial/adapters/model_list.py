"""The models that LiteLLM lists, and their prices. Reads its list without importing it, which takes seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, override

from seatrial.domain.model_calls.prices import Price, price_from

_FILE = "model_prices_and_context_window_backup.json"
_NO_MODEL = "sample_spec"
_BY_TOKENS = frozenset({"chat", "completion", "embedding", "responses"})
_PRICE_WORDS = ("cost", "tiered_pricing", "provider_specific_entry")


@cache
def listed_models() -> frozenset[str]:
    """Empty if this version of LiteLLM has no such file."""
    return frozenset(_read()) - {_NO_MODEL}


def listed_names() -> frozenset[str]:
    """The names that entries of the list have, such as ``input_cost_per_token``."""
    return frozenset(name for entry in _read().values() if isinstance(entry, dict) for name in entry)


class ListedPrices(Mapping[str, Price]):
    """LiteLLM's prices by the name of the model, with and without its provider: ``gpt-5`` and ``openai/gpt-5``.

    The file is read when the first price is asked for. A name without a provider belongs to one; another provider's
    model of the same name is not it."""

    def load(self) -> None:
        """Reads the file and every price in it now."""
        for name in _entries():
            _price(name)

    @override
    def __getitem__(self, model: str) -> Price:
        found = _price(model)
        if found is None:
            raise KeyError(model)
        return found

    @override
    def __iter__(self) -> Iterator[str]:
        return (name for name in _entries() if _price(name) is not None)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _price(model: str) -> Price | None:
    entry = _entries().get(model)
    return None if entry is None else price_from(entry)


@cache
def _entries() -> dict[str, dict[str, Any]]:
    """Only what says a price: the whole list takes several times the memory."""
    found: dict[str, dict[str, Any]] = {}
    for name, entry in _read().items():
        if not isinstance(entry, dict) or name == _NO_MODEL or entry.get("mode") not in _BY_TOKENS:
            continue
        prices = {key: value for key, value in entry.items() if any(word in key for word in _PRICE_WORDS)}
        found[name] = prices
        provider = entry.get("litellm_provider")
        if isinstance(provider, str) and not name.startswith(f"{provider}/"):
            found.setdefault(f"{provider}/{name}", prices)
    return found


def _read() -> dict[str, Any]:
    found = find_spec("litellm")
    if found is None or found.origin is None:
        return {}
    try:
        content = json.loads((Path(found.origin).parent / _FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
