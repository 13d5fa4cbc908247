"""An option without effect and a model that nobody knows are said; a request without either gives no notice."""

from __future__ import annotations

import pytest

from seatrial.adapters.model_list import listed_models
from seatrial.domain.agents.catalogue import MODELS, takes_model
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.domain.task import TaskSelection
from seatrial.engine.jobs.notices import notices
from seatrial.engine.jobs.request import AgentParameters, JobParameters

TERMINUS = (AgentParameters(name="terminus-2"),)
LISTED = frozenset({"gpt-4o", "gpt-4o-mini", "anthropic/claude-x", "openrouter/openai/gpt-4o", "groq/llama"})


def said(**wanted: object) -> list[str]:
    parameters = JobParameters(**wanted)  # type: ignore[arg-type]
    return notices(parameters, parameters.matrix(takes_model), lambda: LISTED)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"models": ("openai/gpt-4o",)}, "The model has no effect: oracle takes none."),
        (
            {"agents": (AgentParameters(name="oracle"), AgentParameters(name="nop")), "options": {"temperature": 1}},
            "Agent options have no effect: oracle and nop take none.",
        ),
        (
            {"agents": (AgentParameters(name="nop", model="openai/gpt-4o"),)},
            "The model openai/gpt-4o has no effect: nop",
        ),
        (
            {"agents": (AgentParameters(name="nop"),), "env": {"A": "1"}},
            "Agent variables have no effect: nop runs nothing.",
        ),
        ({"budget": Budget(job=Cap(calls=3))}, "The budget has no effect: oracle takes no model."),
        ({"selection": TaskSelection(seed=3)}, "The seed has no effect without a sample."),
        (
            {"agents": (AgentParameters(name="terminus-2", model="openai/gpt-4o"),), "models": ("groq/llama",)},
            "The model groq/llama has no effect: every agent has one of its own.",
        ),
        ({"agents": TERMINUS, "models": ("opnai/gpt-4o",)}, "Did you mean 'openai'?"),
        ({"agents": TERMINUS, "models": ("scripted/shel",)}, "no scripted model scripted/shel. Did you mean"),
        ({"agents": TERMINUS, "models": ("openai/gpt-4o-mni",)}, "Did you mean 'openai/gpt-4o-mini'?"),
        (
            {"agents": TERMINUS, "models": ("groq/something-else",)},
            "LiteLLM does not list the model groq/something-else",
        ),
    ],
)
def test_what_is_odd_is_said(wanted: dict[str, object], sentence: str) -> None:
    [found] = said(**wanted)
    assert sentence in found


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"agents": TERMINUS, "models": ("openai/gpt-4o",)},
        {"agents": TERMINUS, "models": ("gpt-4o",), "options": {"temperature": 1}, "env": {"A": "1"}},
        {"agents": TERMINUS, "models": ("openai/my-own",), "options": {"api_base": "http://127.0.0.1:1/v1"}},
        {"agents": TERMINUS, "models": ("openrouter/anthropic/Claude.X",)},
        {"agents": TERMINUS, "models": ("ollama/whatever",)},
        {"agents": TERMINUS, "models": ("hosted_vllm/whatever",)},
        {"agents": TERMINUS, "models": tuple(model.id for model in MODELS)},
        {"agents": (AgentParameters(name="oracle"), *TERMINUS), "models": ("openrouter/openai/gpt-4o",)},
        {"agents": (AgentParameters(name="my.own:Agent"),), "models": ("mine/model",)},
        {"selection": TaskSelection(sample=3, seed=3)},
    ],
)
def test_what_is_right_gives_no_notice(wanted: dict[str, object]) -> None:
    assert said(**wanted) == []


def test_litellm_has_a_list() -> None:
    assert {"gpt-4o", "claude-sonnet-4-5"} <= listed_models()
