"""The catalogue of agents and models, held against Harbor and LiteLLM as they are installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from harbor.agents.factory import AgentFactory
from harbor.agents.installed.base import BaseInstalledAgent
from harbor.agents.model_connection import PROVIDERS
from harbor.models.agent.name import AgentName

from seatrial.domain.agents.catalogue import (
    AGENTS,
    MODELS,
    addresses_for,
    agent_names,
    keys_for,
    needs_model,
    runs_on_host,
)
from seatrial.scripted_models.scripts import SCRIPTS
from tests.agents.registry import PROOFS


def test_the_agents_are_exactly_harbors() -> None:
    assert sorted(agent_names()) == AgentFactory.registered_names()
    assert list(agent_names()) == sorted(agent_names())


@pytest.mark.parametrize("name", ["aider", "claude-code", "codex", "mini-swe-agent", "nop", "oracle"])
def test_where_an_agent_runs_is_what_its_class_says(name: str) -> None:
    installed = issubclass(AgentFactory.get_agent_class(AgentName(name)), BaseInstalledAgent)
    assert runs_on_host(name) is not installed


def test_direct_models_are_known_to_litellm() -> None:
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None
    known = json.loads((Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text())
    direct = [model.id for model in MODELS if not model.id.startswith(("openrouter/", "scripted/"))]
    assert [name for name in direct if name not in known and name.partition("/")[2] not in known] == []


def test_scripted_models_are_the_scripts() -> None:
    scripted = {model.id.removeprefix("scripted/") for model in MODELS if model.id.startswith("scripted/")}
    assert scripted == set(SCRIPTS)


def test_names_are_unique() -> None:
    assert len({agent.name for agent in AGENTS}) == len(AGENTS)
    assert len({model.id for model in MODELS}) == len(MODELS)


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("openrouter/openai/gpt-5.2", ("OPENROUTER_API_KEY",)),
        ("anthropic/claude-sonnet-4-5", ("ANTHROPIC_API_KEY",)),
        ("openai/gpt-4o", ("OPENAI_API_KEY",)),
        ("gpt-4o", ("OPENAI_API_KEY",)),
        ("claude-opus-4-5", ("ANTHROPIC_API_KEY",)),
        ("gemini/gemini-2.5-pro", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        ("xai/grok-4.5", ("XAI_API_KEY",)),
        ("scripted/give-up", ()),
        ("ollama/llama3", ()),
        ("my-own-model", ()),
    ],
)
def test_keys(model: str, keys: tuple[str, ...]) -> None:
    assert keys_for(model) == keys


@pytest.mark.parametrize(
    ("model", "addresses"),
    [
        ("openrouter/openai/gpt-5.2", ("OPENROUTER_API_BASE", "OPENROUTER_BASE_URL")),
        ("gpt-4o", ("OPENAI_API_BASE", "OPENAI_BASE_URL")),
        ("lm_studio/some", ("LM_STUDIO_API_BASE", "LM_STUDIO_BASE_URL")),
        ("ollama_chat/llama3", ("OLLAMA_API_BASE", "OLLAMA_BASE_URL")),
        ("my-own-model", ()),
    ],
)
def test_addresses(model: str, addresses: tuple[str, ...]) -> None:
    assert addresses_for(model) == addresses


def test_who_needs_a_model() -> None:
    assert needs_model("terminus-2")
    assert not needs_model("oracle")
    assert not needs_model("pkg.mod:MyAgent")


def test_it_is_answered_without_harbor_and_litellm() -> None:
    check = "import sys, seatrial.domain.agents.catalogue; assert not {'harbor', 'litellm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_what_is_said_to_be_proven_is_what_the_tests_of_agents_run() -> None:
    """`make reference` writes the one from the other."""
    agents = {agent.name: agent for agent in AGENTS}
    said = {(agent.name, proof.version, proof.model, proof.format) for agent in AGENTS for proof in agent.proven}
    assert said == {(proof.agent, proof.version, proof.model, proof.format) for proof in PROOFS}
    assert [proof.agent for proof in PROOFS if proof.format not in agents[proof.agent].formats] == []


def test_an_agents_own_key_is_one_that_harbors_class_reads() -> None:
    named = {agent.name: agent.keys for agent in AGENTS if agent.keys and agent.formats}
    assert set(named) >= {"claude-code", "codex", "gemini-cli"}
    for name, keys in named.items():
        spec = AgentFactory.get_agent_class(AgentName(name)).MODEL_CONNECTION
        provider = PROVIDERS.get(spec.default_provider or "")
        assert set(keys) & {*spec.api_key_envs, *(provider.api_key_envs if provider else ())}, name
