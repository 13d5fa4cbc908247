"""Fields of resellers and proxies by which a call does more than ask the named model at the provider's address.

A server may know any of them, whichever format it speaks. So all formats with the model in the body share these lists.
"""

from __future__ import annotations

from typing import Any

from seatrial.gateway.wire.json_text import BadCall, JsonObject

_SEARCHES = frozenset({"web_search_options", "plugins", "search_parameters"})
"""OpenAI's, OpenRouter's and xAI's. An empty one asks for a search too."""
_SWITCHES = frozenset({"enable_search"})
"""DashScope's."""
_ELSEWHERE = frozenset(
    {
        *("fallbacks", "provideroptions", "api_base", "base_url", "api_key", "user_config"),
        *("extra_body", "extra_headers"),  # LiteLLM's proxy sends their content on, whatever it is
    }
)
"""In lower case: some servers ignore case."""


def searches(body: JsonObject) -> tuple[str, ...]:
    """Fields that let the provider search the internet."""
    return tuple(name for name, member in body.members.items() if _asks_for_search(name.casefold(), member.value))


def refuse_elsewhere(body: JsonObject, *, known: tuple[str, ...] = ()) -> None:
    """``BadCall`` for fields that let a proxy call another model or another address, or invent an answer.

    ``known``: names that mean something else in this format."""
    for name, member in body.members.items():
        folded = name.casefold()
        if member.value is None or name in known:
            continue
        if folded in _ELSEWHERE or folded.endswith("_fallbacks") or folded.startswith("mock_"):
            raise BadCall(f"{name[:50]!r} may lead the call to another model or address. Send it without.")


def _asks_for_search(name: str, value: Any) -> bool:
    return (name in _SEARCHES and value is not None) or (name in _SWITCHES and bool(value))
