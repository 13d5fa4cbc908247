"""Known agents and models, without importing Harbor or LiteLLM.

Used by the CLI, the API and submission. Agents are those that Harbor registers; a test fails if the lists differ.
Models are a selection for menus: any other LiteLLM name works too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.domain.agents.proven_agents import PROVEN
from seatrial.domain.frozen import Frozen


class Proven(Frozen):
    """What the project's own tests show of an agent: this version of the real program solves a sample in a sandbox
    without a network, through the gate, and everything it used is counted."""

    version: str
    model: str
    """A scripted server plays it, over HTTP and in the provider's format."""
    format: str


class Agent(Frozen):
    name: str
    description: str
    needs_model: bool = True
    runs_on_host: bool = False
    """Calls its model from the worker. Other agents are installed into the sandbox and call it from there."""
    keys: tuple[str, ...] = ()
    """Variables of the key that it needs, one of them; empty if that depends on the model."""
    formats: tuple[str, ...] = ()
    """Wire formats in which it calls models; empty if not known. The gate passes ``chat``, ``responses``, ``messages``
    and ``gemini``."""
    proven: tuple[Proven, ...] = ()


class Model(Frozen):
    id: str
    """LiteLLM's name: ``provider/model``."""
    name: str
    provider: str


_ANY = ("chat", "responses", "messages", "gemini")
"""Of agents that speak to each provider in its own format."""


def _host(name: str, description: str, **more: Any) -> Agent:
    return _installed(name, description, runs_on_host=True, **more)


def _installed(name: str, description: str, **more: Any) -> Agent:
    shown = tuple(Proven(version=version, model=model, format=wire) for version, model, wire in PROVEN.get(name, ()))
    return Agent(name=name, description=description, proven=shown, **more)


AGENTS: tuple[Agent, ...] = (
    _installed("acp", "Any agent that speaks the Agent Client Protocol.", needs_model=False),
    _installed("aider", "Aider, pair programming in the terminal.", formats=_ANY),
    _installed("antigravity-cli", "Google's Antigravity on the command line."),
    _installed("antigravity-sdk", "An agent on Google's Antigravity SDK."),
    _installed(
        "claude-code", "Anthropic's Claude Code.", needs_model=False, keys=("ANTHROPIC_API_KEY",), formats=("messages",)
    ),
    _installed("cline-cli", "Cline on the command line."),
    _installed("code-puppy", "Code Puppy, an open coding agent."),
    _installed("codex", "OpenAI's Codex on the command line.", keys=("OPENAI_API_KEY",), formats=("responses",)),
    _host("computer-1", "Harbor's agent for graphical desktops.", formats=_ANY),
    _installed(
        "copilot-cli",
        "GitHub Copilot on the command line.",
        needs_model=False,
        keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    ),
    _installed("cortex-code", "Snowflake's Cortex Code.", needs_model=False),
    _installed("cursor-cli", "Cursor on the command line.", keys=("CURSOR_API_KEY",)),
    _installed("deerflow", "DeerFlow, a research agent on LangGraph."),
    _installed("devin", "Cognition's Devin on the command line.", needs_model=False, keys=("DEVIN_API_KEY",)),
    _host("dspy-rlm", "A recursive language model written with DSPy."),
    _installed("eve", "Eve, an agent on Node.", needs_model=False),
    _installed("fx", "fx, a coding agent."),
    _installed("fx-dev", "fx from its development version."),
    _installed(
        "gemini-cli",
        "Google's Gemini on the command line.",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        formats=("gemini",),
    ),
    _installed("goose", "Goose, an open and extensible agent."),
    _installed("grok-build", "xAI's Grok Build.", needs_model=False),
    _installed("hermes", "Nous Research's Hermes agent."),
    _installed("junie", "JetBrains' Junie.", needs_model=False),
    _installed("kimi-cli", "Moonshot's Kimi on the command line."),
    _installed("kimi-code", "Moonshot's Kimi Code."),
    _installed("langgraph", "An agent of your own, written with LangGraph.", needs_model=False),
    _installed("mcode", "mcode, a coding agent."),
    _installed("mimo", "Xiaomi's MiMo agent."),
    _installed("mini-swe-agent", "mini-swe-agent: a model, a shell, and a hundred lines.", formats=_ANY),
    _installed("muse-code", "Meta's Muse Code.", needs_model=False, keys=("META_API_KEY",)),
    _installed("nemo-agent", "An agent on NVIDIA's NeMo toolkit."),
    _host("nop", "Does nothing; shows a task's result without any work.", needs_model=False),
    _installed("openclaw", "OpenClaw, an open agent."),
    _installed("opencode", "OpenCode, an open coding agent.", formats=_ANY),
    _installed("openhands", "OpenHands, a platform for coding agents.", formats=_ANY),
    _installed("openhands-sdk", "An agent on the OpenHands SDK.", formats=_ANY),
    _host("oracle", "Runs the task's own solution; shows a task's result for correct work.", needs_model=False),
    _installed("pi", "Pi, a small coding agent."),
    _installed("qwen-coder", "Alibaba's Qwen Code.", keys=("OPENAI_API_KEY",), formats=("chat",)),
    _installed("rovodev-cli", "Atlassian's Rovo Dev.", needs_model=False, keys=("ROVODEV_USER_API_TOKEN",)),
    _installed("strands", "An agent on the Strands SDK."),
    _installed("swe-agent", "SWE-agent, the research agent.", formats=_ANY),
    _host("terminus-2", "Harbor's own agent: one model, one terminal, any provider.", formats=_ANY),
    _installed("trae-agent", "ByteDance's Trae agent."),
    _installed("vibe", "Mistral's Vibe on the command line.", formats=("chat",)),
)

MODELS: tuple[Model, ...] = (
    Model(id="openrouter/openai/gpt-5.2", name="GPT-5.2", provider="OpenRouter"),
    Model(id="openrouter/openai/gpt-5.1", name="GPT-5.1", provider="OpenRouter"),
    Model(id="openrouter/openai/gpt-5-mini", name="GPT-5 mini", provider="OpenRouter"),
    Model(id="openrouter/openai/gpt-4o", name="GPT-4o", provider="OpenRouter"),
    Model(id="openrouter/openai/gpt-oss-120b", name="GPT-OSS 120B", provider="OpenRouter"),
    Model(id="openrouter/anthropic/claude-opus-4.5", name="Claude Opus 4.5", provider="OpenRouter"),
    Model(id="openrouter/anthropic/claude-sonnet-4.5", name="Claude Sonnet 4.5", provider="OpenRouter"),
    Model(id="openrouter/anthropic/claude-haiku-4.5", name="Claude Haiku 4.5", provider="OpenRouter"),
    Model(id="openrouter/google/gemini-2.5-pro", name="Gemini 2.5 Pro", provider="OpenRouter"),
    Model(id="openrouter/google/gemini-2.5-flash", name="Gemini 2.5 Flash", provider="OpenRouter"),
    Model(id="openrouter/meta-llama/llama-3.3-70b-instruct", name="Llama 3.3 70B", provider="OpenRouter"),
    Model(id="openrouter/meta-llama/llama-4-maverick", name="Llama 4 Maverick", provider="OpenRouter"),
    Model(id="openrouter/deepseek/deepseek-chat", name="DeepSeek V3", provider="OpenRouter"),
    Model(id="openrouter/qwen/qwen3-coder", name="Qwen3 Coder", provider="OpenRouter"),
    Model(id="openrouter/moonshotai/kimi-k2", name="Kimi K2", provider="OpenRouter"),
    Model(id="openrouter/z-ai/glm-4.6", name="GLM 4.6", provider="OpenRouter"),
    Model(id="openai/gpt-5.2", name="GPT-5.2", provider="OpenAI"),
    Model(id="openai/gpt-5.1", name="GPT-5.1", provider="OpenAI"),
    Model(id="openai/gpt-5-mini", name="GPT-5 mini", provider="OpenAI"),
    Model(id="openai/gpt-4o", name="GPT-4o", provider="OpenAI"),
    Model(id="anthropic/claude-opus-4-5", name="Claude Opus 4.5", provider="Anthropic"),
    Model(id="anthropic/claude-sonnet-4-5", name="Claude Sonnet 4.5", provider="Anthropic"),
    Model(id="anthropic/claude-haiku-4-5", name="Claude Haiku 4.5", provider="Anthropic"),
    Model(id="gemini/gemini-2.5-pro", name="Gemini 2.5 Pro", provider="Google"),
    Model(id="gemini/gemini-2.5-flash", name="Gemini 2.5 Flash", provider="Google"),
    Model(id="deepseek/deepseek-chat", name="DeepSeek V3", provider="DeepSeek"),
    Model(id="mistral/devstral-medium-latest", name="Devstral Medium", provider="Mistral"),
    Model(id="scripted/solve-read-the-screen", name="Solves the sample read-the-screen", provider="Scripted"),
    Model(id="scripted/shell", name="Runs the commands of the instruction", provider="Scripted"),
    Model(id="scripted/give-up", name="Does nothing and says done", provider="Scripted"),
    Model(id="scripted/outage", name="A service that is down", provider="Scripted"),
)

_KEYS: Mapping[str, tuple[str, ...]] = {
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "huggingface": ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    "nvidia": ("NVIDIA_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    # Served by the user's own machine or by Seatrial: no key.
    "scripted": (),
    "ollama": (),
    "ollama_chat": (),
    "hosted_vllm": (),
    "lm_studio": (),
    "llamafile": (),
    "vertex_ai": (),
}
"""Providers whose key is not named ``<PROVIDER>_API_KEY`` in LiteLLM."""
USUAL_PROVIDERS = frozenset(
    {
        "ai21", "aiml", "anthropic", "cerebras", "codestral", "cohere", "cohere_chat", "dashscope", "deepinfra",
        "deepseek", "featherless_ai", "fireworks_ai", "friendliai", "gemini", "groq", "hyperbolic", "inception",
        "lambda_ai", "meta_llama", "minimax", "mistral", "moonshot", "morph", "nebius", "novita", "nscale",
        "nvidia_nim", "openai", "openrouter", "parasail", "perplexity", "replicate", "sambanova", "scripted",
        "together_ai", "v0", "vercel_ai_gateway", "voyage", "wandb", "xai", "zai",
    }
)  # fmt: skip
"""Providers with one public address and a key. All others are elsewhere by default: on this machine (ollama,
lm_studio, llamafile, xinference, docker_model_runner, langflow, vllm in the worker itself), at an address from the
environment (azure, databricks, litellm_proxy, …), or they use the machine's credentials (bedrock, sagemaker,
vertex_ai, oci, github_copilot, chatgpt, …)."""
ADDRESSED_PROVIDERS = frozenset(
    {
        "anthropic", "custom_openai", "deepseek", "hosted_vllm", "litellm_proxy", "llamafile", "lm_studio", "mistral",
        "moonshot", "ollama", "ollama_chat", "openai", "openai_like", "openrouter", "scripted", "together_ai", "xai",
    }
)  # fmt: skip
"""Providers whose models are called only at the address that the job gives."""
_BARE_NAMES = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "gemini",
}


def agent_names() -> tuple[str, ...]:
    return tuple(agent.name for agent in AGENTS)


def needs_model(agent: str) -> bool:
    """False for agents by import path: they decide for themselves."""
    return any(known.needs_model for known in AGENTS if known.name == agent)


def takes_model(agent: str) -> bool:
    """All agents except those that run the task's solution or do nothing."""
    return agent not in ("oracle", "nop")


def runs_on_host(agent: str) -> bool:
    return any(known.runs_on_host for known in AGENTS if known.name == agent)


def calls_any_address(agent: str) -> bool:
    """Whether this agent calls its model from the worker, at any address that it is given."""
    return agent in ("computer-1", "terminus-2")


def keys_for(model: str) -> tuple[str, ...]:
    """Environment variables for this model's key; one of them must be set. Empty for models without a key."""
    provider = provider_of(model)
    return _KEYS.get(provider, (f"{_prefix(provider)}_API_KEY",)) if provider else ()


def addresses_for(model: str) -> tuple[str, ...]:
    """Environment variables from which LiteLLM reads the address of this model's provider."""
    prefix = _prefix(provider_of(model)).removesuffix("_CHAT")  # ollama's models have two names and one address
    return (f"{prefix}_API_BASE", f"{prefix}_BASE_URL") if prefix else ()


def provider_of(model: str) -> str:
    """The provider that LiteLLM would call; empty for an unknown bare name."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((known for start, known in _BARE_NAMES.items() if model.startswith(start)), "")


def _prefix(provider: str) -> str:
    return provider.upper().replace("-", "_")
