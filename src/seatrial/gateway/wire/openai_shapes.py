"""What chat completions, embeddings and responses share: errors, the list of models, tools."""

from __future__ import annotations

from typing import Any

from seatrial.gateway.wire.format import REFUSAL_HEADERS, Refusal, RefusalKind, written
from seatrial.gateway.wire.json_text import BadCall

ERRORS: dict[RefusalKind, tuple[int, str, str]] = {
    "over_budget": (402, "insufficient_quota", "insufficient_quota"),
    "unknown_model": (404, "invalid_request_error", "model_not_found"),
    "forbidden_path": (404, "invalid_request_error", "unknown_url"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "upstream_away": (400, "server_error", "server_error"),
    "bad_call": (400, "invalid_request_error", "invalid_request"),
    "replay_miss": (404, "not_found_error", "replay_miss"),
}
"""Status, type and code. A 402 is what resellers answer without credit. Clients do not try it again; a 429 they do."""
_LOCAL_TOOLS = frozenset({"function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"})
"""Kinds of tools that the agent runs itself."""


def openai_refusal(kind: RefusalKind, message: str, *, status: int | None = None) -> Refusal:
    usual, type_, code = ERRORS[kind]
    if kind == "over_budget":
        message = f"You exceeded your current quota. {message}"  # words that agents look for
    error = {"message": message, "type": type_, "param": None, "code": code}
    return status or usual, REFUSAL_HEADERS, written({"error": error})


def openai_models(names: list[str]) -> bytes:
    entries = [{"id": name, "object": "model", "created": 0, "owned_by": "seatrial"} for name in names]
    return written({"object": "list", "data": entries})


def provider_tools(tools: list[dict[str, Any]]) -> tuple[str, ...]:
    """Kinds of the tools that the provider runs."""
    kinds = ["function" if tool.get("type") is None else tool["type"] for tool in tools]
    if not all(isinstance(kind, str) for kind in kinds):
        raise BadCall("The type of a tool is not a text.")
    hosted = [
        kind for kind, tool in zip(kinds, tools, strict=True) if kind not in _LOCAL_TOOLS and not _is_local(kind, tool)
    ]
    return tuple(dict.fromkeys(kind[:50] for kind in hosted))


def _is_local(kind: str, tool: dict[str, Any]) -> bool:
    """A shell runs where its environment says."""
    place = tool.get("environment")
    return kind == "shell" and isinstance(place, dict) and place.get("type") == "local"
