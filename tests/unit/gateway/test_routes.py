"""Where calls go: every provider's address, the names of models, and the headers of keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from seatrial.domain.agents.catalogue import ADDRESSED_PROVIDERS, USUAL_PROVIDERS
from seatrial.domain.model_calls.provider_addresses import PROVIDER_ADDRESSES, has_route, speaks_a_format
from seatrial.gateway.routes import Routes, agent_variables, host_address, host_model, route_to

ASK_LITELLM = """
import json, sys
from litellm.litellm_core_utils.get_llm_provider_logic import get_llm_provider
print(json.dumps({name: get_llm_provider(f"{name}/m")[3] for name in json.loads(sys.argv[1])}))
"""
NOT_SPOKEN = {"ai21", "cohere", "cohere_chat", "replicate", "voyage"}
"""Usual providers with a format of their own, which LiteLLM speaks from the worker."""


def test_addresses_are_those_that_litellm_uses() -> None:
    names = sorted(PROVIDER_ADDRESSES)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, "-W", "ignore", "-c", ASK_LITELLM, json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    told = {name: url for name, url in json.loads(done.stdout.splitlines()[-1]).items() if url is not None}
    assert len(told) > 25  # it keeps those of the others in its code
    assert {name: PROVIDER_ADDRESSES[name] for name in told} == told


def test_every_usual_provider_has_a_route_or_is_known_to_have_none() -> None:
    assert {name for name in USUAL_PROVIDERS | ADDRESSED_PROVIDERS if not speaks_a_format(name)} == NOT_SPOKEN
    assert not has_route("bedrock/claude")
    assert has_route("hosted_vllm/m", addressed=True) and not has_route("hosted_vllm/m")


@pytest.mark.parametrize(
    ("model", "address", "url", "header"),
    [
        ("openai/m", None, "https://api.openai.com/v1/chat/completions", "authorization"),
        ("openrouter/openai/m", None, "https://openrouter.ai/api/v1/chat/completions", "authorization"),
        ("openai/m", "http://own:8000/v1/", "http://own:8000/v1/chat/completions", "authorization"),
        ("openai/m", "http://own/v1/chat/completions", "http://own/v1/chat/completions", "authorization"),
        ("openai/m", "http://own/v1?version=2", "http://own/v1/chat/completions", "authorization"),
        ("anthropic/m", "https://own", "https://own/v1/chat/completions", "x-api-key"),
        ("anthropic/m", "https://own/v1/messages", "https://own/v1/chat/completions", "x-api-key"),
        ("gemini/m", "https://own", "https://own/v1beta/chat/completions", "x-goog-api-key"),
        ("ollama_chat/m", None, "http://localhost:11434/v1/chat/completions", "authorization"),
        ("ollama/m", "http://own:1", "http://own:1/v1/chat/completions", "authorization"),
    ],
)
def test_a_call_goes_to_its_provider(model: str, address: str | None, url: str, header: str) -> None:
    route = route_to(model, "sk-canary", address)
    assert route is not None
    for path in ("/v1/chat/completions", "/chat/completions", "/api/v1/chat/completions"):
        assert route.url(path) == url
    assert list(route.headers) == [header] and "sk-canary" not in repr(route) and "sk-canary" not in route.account


@pytest.mark.parametrize(
    ("model", "called", "own"),
    [
        ("openrouter/openai/gpt-5.2", ("openrouter/openai/gpt-5.2", "openai/gpt-5.2", "gpt-5.2"), "openai/gpt-5.2"),
        ("openai/gpt-5", ("openai/gpt-5", "gpt-5"), "gpt-5"),
        ("claude-opus", ("claude-opus",), "claude-opus"),
        ("fireworks_ai/m", ("fireworks_ai/m", "m", "accounts/fireworks/models/m"), "accounts/fireworks/models/m"),
    ],
)
def test_agents_call_a_model_by_several_names(model: str, called: tuple[str, ...], own: str) -> None:
    route = route_to(model, None)
    assert route is not None and route.model == own
    routes = Routes([route])
    assert all(routes.of(name) is route for name in called)
    assert routes.of("gpt") is None and routes.of("") is None and routes.models == (own,)


def test_the_first_route_has_the_name_that_two_share() -> None:
    one, two = route_to("openai/m", "k1"), route_to("openrouter/x/m", "k2")
    assert one is not None and two is not None
    assert Routes([one, two]).of("m") is one and Routes([one, two]).of("x/m") is two


def test_accounts_and_addresses_have_a_pace_each() -> None:
    ways = [("m", "k1", None), ("m", "k2", None), ("m", "k1", "http://own/v1"), ("n", "k1", None)]
    found = [route_to(f"openai/{model}", key, address) for model, key, address in ways]
    assert len({route.account for route in found if route is not None}) == 4


@pytest.mark.parametrize(
    ("model", "address", "key"),
    [
        ("openai/m", "OPENAI_BASE_URL=http://door/v1", "OPENAI_API_KEY"),
        ("openrouter/x/m", "OPENROUTER_BASE_URL=http://door/v1", "OPENROUTER_API_KEY"),
        ("anthropic/m", "ANTHROPIC_BASE_URL=http://door", "ANTHROPIC_API_KEY"),
        ("gemini/m", "GOOGLE_GEMINI_BASE_URL=http://door", "GEMINI_API_KEY"),
    ],
)
def test_an_agent_inside_reads_address_and_placeholder_from_its_usual_variables(
    model: str, address: str, key: str
) -> None:
    route = route_to(model, "sk-canary")
    assert route is not None
    found = agent_variables(route, "http://door", "placeholder")
    assert address in [f"{name}={value}" for name, value in found.items()] and found[key] == "placeholder"
    assert "sk-canary" not in str(found)


def test_litellm_in_the_worker_gets_the_address_as_each_provider_has_it() -> None:
    addresses = {}
    for model in ("openai/m", "anthropic/m", "gemini/m", "ollama_chat/m", "hosted_vllm/maker/name"):
        route = route_to(model, None, "http://vllm:8000/v1" if "vllm" in model else None)
        assert route is not None
        addresses[host_model(route, model)] = host_address(route, "http://door")
    assert addresses == {
        "openai/m": "http://door/v1",
        "anthropic/m": "http://door",
        "gemini/m": "http://door/v1beta",
        "openai/maker/name": "http://door/v1",
    }
