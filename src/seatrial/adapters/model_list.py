"""The names of models that LiteLLM lists. Reads its list of prices without importing it, which takes seconds."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_FILE = "model_prices_and_context_window_backup.json"


@cache
def listed_models() -> frozenset[str]:
    """Empty if this version of LiteLLM has no such file."""
    found = find_spec("litellm")
    if found is None or found.origin is None:
        return frozenset()
    try:
        content = json.loads((Path(found.origin).parent / _FILE).read_bytes())
    except (OSError, ValueError):
        return frozenset()
    return frozenset(content) - {"sample_spec"}
