"""Options of terminus-2: which belong to the agent, and which to each model call.

The runner passes the result of ``terminus_options`` as the agent's keyword arguments. Keys are not included: Harbor
writes its configuration to disk, and ``patience.make_patient`` adds keys to the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from seatrial.errors import InvalidInput

AGENT_OPTIONS = frozenset(
    {
        "api_base",
        "collect_rollout_details",
        "enable_summarize",
        "interleaved_thinking",
        "llm_backend",
        "llm_call_kwargs",
        "llm_kwargs",
        "max_thinking_tokens",
        "max_turns",
        "model_info",
        "parser_name",
        "proactive_summarization_threshold",
        "reasoning_effort",
        "record_terminal_session",
        "session_id",
        "session_id_headers",
        "store_all_messages",
        "suppress_max_turns_warning",
        "temperature",
        "tmux_pane_height",
        "tmux_pane_width",
        "trajectory_config",
        "use_responses_api",
    }
)
"""Options of Harbor's agent; a test compares them with Harbor's list."""

CALL_OPTIONS = frozenset(
    {
        "extra_body",
        "extra_headers",
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "min_p",
        "n",
        "presence_penalty",
        "repetition_penalty",
        "seed",
        "stop",
        "thinking",
        "timeout",
        "top_k",
        "top_p",
        "verbosity",
    }
)
"""Options of each model call."""

_RENAMED = {"base_url": "api_base", "max_episodes": "max_turns", "episodes": "max_turns"}


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
