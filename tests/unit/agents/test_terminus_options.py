"""Options of terminus-2: what is the agent's, what is the model call's, and what nobody would read."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from seatrial.agents.terminus import AGENT_OPTIONS, terminus_options
from seatrial.errors import InvalidInput


def test_options_of_a_call_travel_with_each_call() -> None:
    options = terminus_options({"temperature": 0.2, "top_p": 0.9, "seed": 7, "max_turns": 5, "base_url": "http://x/v1"})
    assert options == {
        "suppress_max_turns_warning": True,
        "temperature": 0.2,
        "max_turns": 5,
        "api_base": "http://x/v1",
        "llm_call_kwargs": {"top_p": 0.9, "seed": 7},
    }


def test_given_call_options_are_kept() -> None:
    assert terminus_options({"llm_call_kwargs": {"n": 1}, "top_p": 1})["llm_call_kwargs"] == {"n": 1, "top_p": 1}


def test_an_unknown_option_is_named_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'temperature'"):
        terminus_options({"temprature": 1})


def test_a_key_is_never_an_option() -> None:
    with pytest.raises(InvalidInput, match="keys come from the environment"):
        terminus_options({"api_key": "sk-canary"})


def test_harbor_takes_exactly_these() -> None:
    """Read, not imported: the agent brings LiteLLM, which takes seconds."""
    spec = find_spec("harbor")
    assert spec is not None and spec.origin is not None
    source = (Path(spec.origin).parent / "agents/terminus_2/terminus_2.py").read_text()
    options = next(
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Terminus2Options"
    )
    fields = {
        node.target.id for node in options.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert fields == AGENT_OPTIONS
