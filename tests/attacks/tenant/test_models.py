"""A tenant of an open server names a model that leads to the operator's machine or uses its credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from seatrial.domain.agents.catalogue import USUAL_PROVIDERS
from seatrial.domain.token import Role
from seatrial.engine.jobs.model_urls import ModelUrls
from seatrial.errors import InvalidInput
from tests.attacks.tenant.doors import OPEN, Doors, doors_open

LOCAL = (
    "ollama/llama3",
    "ollama_chat/llama3",
    "OLLAMA/llama3",
    "Ollama/llama3",
    "lm_studio/x",
    "llamafile/x",
    "hosted_vllm/x",
    "vllm/facebook/opt-125m",
    "xinference/x",
    "docker_model_runner/x",
    "langflow/x",
    "langgraph/x",
    "lemonade/x",
    "litellm_proxy/x",
    "custom_openai/x",
    "openai_like/x",
    "oobabooga/x",
    "petals/x",
)
CREDENTIALS = (
    "sagemaker/x",
    "bedrock/anthropic.claude-3",
    "bedrock/arn:aws:bedrock:us-east-1:1:x",
    "vertex_ai/gemini-pro",
    "vertex_ai_beta/x",
    "azure/x",
    "github_copilot/gpt-4",
    "chatgpt/gpt-5",
    "oci/x",
    "databricks/x",
    "snowflake/x",
    "watsonx/x",
)
STRANGE = (
    "huggingface/http://127.0.0.1:9/x",
    "openai/http://127.0.0.1:9/x",
    "openai//127.0.0.1",
    "no-such-bare-name",
    " ollama/x",
    "openai/x\nollama/x",
    "openai/${HOME}",
    "x" * 300,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def doors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    settings = {**OPEN, "model_url_allowlist": "https://models.example"}
    with pytest.MonkeyPatch.context() as environment:
        for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "SNOWFLAKE", "DATABRICKS"):
            environment.setenv(f"{name}_API_KEY", "sk-ours")
        async with doors_open(tmp_path_factory.mktemp("home"), **settings) as opened:
            yield opened


@pytest.mark.parametrize("model", [*LOCAL, *CREDENTIALS, *STRANGE], ids=lambda model: repr(model[:40]))
async def test_a_model_name_is_no_way_to_this_machine(doors: Doors, model: str) -> None:
    answer = await doors.agent("terminus-2", model, 422)
    assert answer["error"]["field"] == "model", answer
    if len(model) < 255:
        await doors.runner(400, model=model, agent="terminus-2")
        await doors.compass(422, model_name=model) if "/" in model else None


@pytest.mark.parametrize("model", ["openai/gpt-4", "anthropic/claude-opus-4-5", "openrouter/ollama/x", "gpt-4o"])
async def test_usual_models_are_taken(doors: Doors, model: str) -> None:
    await doors.agent("terminus-2", model)


async def test_a_listed_address_makes_a_local_provider_usable(doors: Doors) -> None:
    """And only those that go to the address they are given."""
    address = {"api_base": "https://models.example/v1"}
    await doors.agent("terminus-2", "ollama/x", options=address)
    await doors.agent("terminus-2", "hosted_vllm/x", options=address)
    await doors.agent("terminus-2", "sagemaker/x", 422, options=address)
    await doors.agent("terminus-2", "vertex_ai/x", 422, options=address)


async def test_the_operator_may_list_a_provider_or_set_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors_open(tmp_path / "a", **OPEN, model_providers="bedrock, lm_studio") as doors:
        await doors.agent("terminus-2", "lm_studio/x")
        await doors.agent("terminus-2", "ollama/x", 422)
    monkeypatch.setenv("OLLAMA_API_BASE", "http://10.1.2.3:11434")
    async with doors_open(tmp_path / "b", **OPEN) as doors:
        await doors.agent("terminus-2", "ollama/x")
        await doors.agent("terminus-2", "lm_studio/x", 422)


async def test_with_tokens_a_server_is_open_too_and_alone_it_is_not(tmp_path: Path) -> None:
    async with doors_open(tmp_path / "a", Role.ADMIN) as doors:
        await doors.agent("terminus-2", "ollama/x", 422)
    async with doors_open(tmp_path / "b") as doors:  # on loopback, its only user is the one at the machine
        await doors.agent("terminus-2", "ollama/x")


def test_no_usual_provider_is_reached_at_this_machine_by_default() -> None:
    """By LiteLLM's own resolution: none of them has a default address that is not a public https one."""
    import os

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    named = {provider.value for provider in litellm.LlmProviders}
    for provider in USUAL_PROVIDERS - {"scripted"}:
        assert provider in named, provider
        _, _, _, base = litellm.get_llm_provider(f"{provider}/x")
        assert base is None or str(base).startswith("https://"), (provider, base)


@pytest.mark.parametrize("model", LOCAL)
def test_where_anybody_may_call_anywhere_there_is_nothing_to_refuse(model: str) -> None:
    ModelUrls("", anywhere=True).check_model(model, addressed=False)
    with pytest.raises(InvalidInput):
        ModelUrls("", anywhere=False).check_model(model, addressed=False)
