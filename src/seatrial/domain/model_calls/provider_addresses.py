"""Providers that speak one of the gateway's wire formats, and where they are.

Models of other providers (bedrock, vertex_ai, cohere, …) are called by LiteLLM in the worker, without the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seatrial.domain.agents.catalogue import provider_of

PROVIDER_ADDRESSES: Mapping[str, str] = MappingProxyType(
    {
        "aiml": "https://api.aimlapi.com/v1",
        "anthropic": "https://api.anthropic.com/v1",
        "cerebras": "https://api.cerebras.ai/v1",
        "codestral": "https://codestral.mistral.ai/v1",
        "dashscope": "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "deepinfra": "https://api.deepinfra.com/v1/openai",
        "deepseek": "https://api.deepseek.com/beta",
        "featherless_ai": "https://api.featherless.ai/v1",
        "fireworks_ai": "https://api.fireworks.ai/inference/v1",
        "friendliai": "https://api.friendli.ai/serverless/v1",
        "gemini": "https://generativelanguage.googleapis.com/v1beta",
        "groq": "https://api.groq.com/openai/v1",
        "hyperbolic": "https://api.hyperbolic.xyz/v1",
        "inception": "https://api.inceptionlabs.ai/v1",
        "lambda_ai": "https://api.lambda.ai/v1",
        "llamafile": "http://127.0.0.1:8080/v1",
        "meta_llama": "https://api.llama.com/compat/v1",
        "minimax": "https://api.minimax.io/v1",
        "mistral": "https://api.mistral.ai/v1",
        "moonshot": "https://api.moonshot.ai/v1",
        "morph": "https://api.morphllm.com/v1",
        "nebius": "https://api.studio.nebius.ai/v1",
        "novita": "https://api.novita.ai/v3/openai",
        "nscale": "https://inference.api.nscale.com/v1",
        "nvidia_nim": "https://integrate.api.nvidia.com/v1",
        "openai": "https://api.openai.com/v1",
        "openrouter": "https://openrouter.ai/api/v1",
        "parasail": "https://api.parasail.io/v1",
        "perplexity": "https://api.perplexity.ai",
        "sambanova": "https://api.sambanova.ai/v1",
        "together_ai": "https://api.together.ai/v1",
        "v0": "https://api.v0.dev/v1",
        "vercel_ai_gateway": "https://ai-gateway.vercel.sh/v1",
        "wandb": "https://api.inference.wandb.ai/v1",
        "xai": "https://api.x.ai/v1",
        "zai": "https://api.z.ai/api/paas/v4",
    }
)
"""By LiteLLM's names. A version is part of each. A test compares them with LiteLLM's."""
_NEED_AN_ADDRESS = frozenset({"custom_openai", "hosted_vllm", "litellm_proxy", "lm_studio", "openai_like", "scripted"})
OLLAMA = frozenset({"ollama", "ollama_chat"})


def speaks_a_format(provider: str) -> bool:
    return provider in PROVIDER_ADDRESSES or provider in _NEED_AN_ADDRESS or provider in OLLAMA


def has_route(model: str, *, addressed: bool = False) -> bool:
    """Whether calls of this model go through the gate. ``addressed``: the job names an address for it."""
    provider = provider_of(model)
    return speaks_a_format(provider) and (addressed or provider not in _NEED_AN_ADDRESS or provider == "scripted")
