"""Options of terminus-2: which belong to the agent, and which to each model call.

The runner passes the result of ``terminus_options`` as the agent's keyword arguments. Keys are not included: Harbor
writes its configuration to disk, and ``model_retries.retry_model_calls`` adds keys to the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from seatrial.domain.agents.agent_options import CALL_OPTIONS as ALLOWED_IN_CALLS
from seatrial.domain.agents.agent_options import TERMINUS
from seatrial.errors import InvalidInput

_RENAMED = {"base_url": "api_base", "max_episodes": "max_turns", "episodes": "max_turns"}
CALL_OPTIONS = ALLOWED_IN_CALLS.keys() - {"allowed_openai_params", "temperature"} | {"extra_headers"}
"""Options of each model call."""
AGENT_OPTIONS = TERMINUS.keys() - CALL_OPTIONS - _RENAMED.keys() | {"llm_kwargs", "session_id_headers"}
"""Options of Harbor's agent; a test compares them with Harbor's list. Jobs submitted on the machine may set a few more
than callers of the service."""


def terminus_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of Harbor's terminus-2. Raises ``InvalidInput`` for an unknown option."""
    agent: dict[str, Any] = {"suppress_max_turns_warning": True}
    call: dict[str, Any] = {}
    for given, value in options.items():
        name = _RENAMED.get(given, given)
        if name in AGENT_OPTIONS:
            agent[name] = value
        elif name in CALL_OPTIONS:
            call[name] = value
        elif "key" in name or "token" in name:
            raise InvalidInput(
                f"{given!r} is not an option: keys come from the environment or the settings.", field=given
            )
        else:
            raise InvalidInput(f"terminus-2 has no option {given!r}.", field=given, fix=_closest(name))
    if call:
        agent["llm_call_kwargs"] = {**(agent.get("llm_call_kwargs") or {}), **call}
    return agent


def _closest(name: str) -> str:
    found = get_close_matches(name, AGENT_OPTIONS | CALL_OPTIONS, n=1)
    return f"Did you mean {found[0]!r}?" if found else ""
