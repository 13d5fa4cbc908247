"""How a model is called for a client that speaks of models in OpenAI's words: name, key, address, parameters.

Everything is turned into what an agent takes (``AgentSpec``), so that each parameter goes with every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.domain.catalogue import keys_for
from seatrial.errors import InvalidInput

_OPENAI = "openai"
_OF_AGENT = frozenset({"temperature", "reasoning_effort"})
"""What the agent sends itself."""
_OF_CALL = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "presence_penalty",
        "seed",
        "stop",
        "top_p",
    }
)
"""OpenAI's own parameters; all others go into the body as they are."""
_NOT_HERE = {
    "api_base": "llm_config.url",
    "api_key": "llm_config.api_key",
    "base_url": "llm_config.url",
    "extra_headers": "llm_config.api_key",
    "model": "llm_config.model_name",
    "timeout": "llm_config.request_timeout",
    "url": "llm_config.url",
}
_AGENTS_BUSINESS = ("messages", "stream", "stream_options")


def model_called(name: str, url: str | None) -> str:
    """The model as LiteLLM calls it. An address of its own speaks OpenAI's language, whatever its models are called."""
    if url is not None:
        return f"{_OPENAI}/{name}"
    return name if "/" in name or keys_for(name) else f"{_OPENAI}/{name}"


def model_options(
    params: Mapping[str, Any], *, url: str | None, max_turns: int | None, request_timeout: float | None
) -> dict[str, Any]:
    """The agent's options. Raises ``InvalidInput`` for a parameter that would not do what it says."""
    options: dict[str, Any] = {}
    body: dict[str, Any] = {}
    for name, value in params.items():
        if name in _NOT_HERE:
            raise _misplaced(name, f"It belongs into {_NOT_HERE[name]}.")
        if name in _AGENTS_BUSINESS:
            raise _misplaced(name, "The agent decides about that.")
        if value is None:
            continue
        if name == "extra_body" and isinstance(value, Mapping):
            body.update(value)
        elif name in _OF_AGENT | _OF_CALL:
            options[name] = value
        else:
            body[name] = value
    if options:
        # LiteLLM drops what it believes a model does not take, by the model's name. Here the caller knows better.
        options["llm_call_kwargs"] = {"allowed_openai_params": sorted(options)}
    given = {"extra_body": body or None, "api_base": url, "max_turns": max_turns, "timeout": request_timeout}
    return options | {name: value for name, value in given.items() if value is not None}


def _misplaced(name: str, fix: str) -> InvalidInput:
    field = f"llm_config.model_infer_params.{name}"
    return InvalidInput(f"{name!r} is not a parameter of the model's answer.", field=field, fix=fix)
