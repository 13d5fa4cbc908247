"""Agent options and environment variables that callers of the service may set.

Only these reach an agent's constructor, unless the job was submitted on the machine itself. Harbor's agents run in the
worker's process: an option with a path reads a file of the worker, one with a class name imports it. A test compares
this table with Harbor's own lists, so every new option must be either allowed or refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seatrial.domain.option_kinds import (
    ADDRESS,
    FILE,
    FLAG,
    VERSION,
    Kind,
    document,
    fields,
    number,
    one_of,
    text,
    whole,
    words,
)

Options = Mapping[str, Kind]

_EFFORT = text(32)
_TURNS = whole(1, 100_000)
_TOKENS = whole(0, 100_000_000)
_MONEY = number(0, 1_000_000)
_SECONDS = number(0, 604_800)
_MODEL: Options = {"api_base": ADDRESS, "base_url": ADDRESS}
"""For every agent that calls a model."""
_INSTALLED: Options = {**_MODEL, "version": VERSION, "config": document()}
"""For every agent that is installed into the sandbox. ``config`` only as an object: a string would be a path."""

MODEL_INFO = fields(
    {
        name: number(0)
        for name in (
            "cache_creation_input_token_cost",
            "cache_read_input_token_cost",
            "input_cost_per_token",
            "max_input_tokens",
            "max_output_tokens",
            "max_tokens",
            "output_cost_per_token",
        )
    }
)
"""Numbers only: other fields change how LiteLLM calls models for all trials of a worker."""

CALL_OPTIONS: Options = {
    "allowed_openai_params": words(),
    "extra_body": document(16 << 10),
    "frequency_penalty": number(-10, 10),
    "logit_bias": document(16 << 10),
    "max_completion_tokens": _TOKENS,
    "max_tokens": _TOKENS,
    "min_p": number(0, 1),
    "n": whole(1, 16),
    "presence_penalty": number(-10, 10),
    "repetition_penalty": number(-10, 10),
    "seed": whole(-(2**63), 2**63 - 1),
    "stop": words(1000),
    "temperature": number(0, 10),
    "thinking": document(1000),
    "timeout": _SECONDS,
    "top_k": whole(-1, 1_000_000),
    "top_p": number(0, 1),
    "verbosity": text(32),
}
"""Options of each model call that the worker makes."""

_CHAT: Options = {
    **_MODEL,
    "collect_rollout_details": FLAG,
    "llm_call_kwargs": fields(CALL_OPTIONS),
    "max_thinking_tokens": _TOKENS,
    "max_turns": _TURNS,
    "model_info": MODEL_INFO,
    "reasoning_effort": _EFFORT,
    "session_id": text(200),
    "temperature": number(0, 10),
    "use_responses_api": FLAG,
}
_TERMINUS: Options = {
    **{name: kind for name, kind in CALL_OPTIONS.items() if name != "allowed_openai_params"},
    **_CHAT,
    "enable_summarize": FLAG,
    "episodes": _TURNS,
    "interleaved_thinking": FLAG,
    "llm_backend": one_of("litellm"),
    "max_episodes": _TURNS,
    "parser_name": one_of("json", "xml"),
    "proactive_summarization_threshold": _TOKENS,
    "record_terminal_session": FLAG,
    "store_all_messages": FLAG,
    "suppress_max_turns_warning": FLAG,
    "tmux_pane_height": whole(10, 1000),
    "tmux_pane_width": whole(10, 1000),
    "trajectory_config": fields({"raw_content": FLAG, "linear_history": FLAG}),
}
_COMPUTER: Options = {
    **_CHAT,
    "desktop_height": whole(100, 10_000),
    "desktop_width": whole(100, 10_000),
    "enable_episode_logging": FLAG,
    "enable_images": FLAG,
    "extra_tools": words(),
    "gemini_auto_ack_safety": FLAG,
    "provider": one_of("generic", "anthropic", "gemini", "openai"),
    "runtime_action_timeout_sec": _SECONDS,
    "runtime_readiness_timeout_sec": _SECONDS,
    "runtime_request_timeout_sec": _SECONDS,
    "start_url": text(2000),
    "window_height": whole(100, 10_000),
    "window_width": whole(100, 10_000),
    "window_x": whole(0, 10_000),
    "window_y": whole(0, 10_000),
}

_OF_AGENT: Mapping[str, Options] = {
    "aider": {
        "auto_lint": FLAG,
        "auto_test": FLAG,
        "cache_prompts": FLAG,
        "map_tokens": _TOKENS,
        "reasoning_effort": _EFFORT,
        "stream": FLAG,
        "test_cmd": text(),
        "thinking_tokens": _TOKENS,
    },
    "antigravity-cli": {"reasoning_effort": _EFFORT, "sandbox": FLAG},
    "antigravity-sdk": {"load_skills": FLAG, "reasoning_effort": _EFFORT, "skill_paths": words(1000)},
    "claude-code": {
        "allowed_tools": text(),
        "append_system_prompt": text(32 << 10),
        "disable_web_search": FLAG,
        "disallowed_tools": text(),
        "fallback_model": text(200),
        "max_budget_usd": _MONEY,
        "max_thinking_tokens": _TOKENS,
        "max_turns": _TURNS,
        "permission_mode": text(32),
        "reasoning_effort": _EFFORT,
        "thinking_display": text(32),
    },
    "cline-cli": {
        "agent_timeout_sec": _SECONDS,
        "cline_timeout_sec": _SECONDS,
        "cline_version": VERSION,
        "max_consecutive_mistakes": whole(0, 1000),
        "reasoning_effort": _EFFORT,
        "setup_command_timeout_sec": _SECONDS,
        "setup_retries": whole(0, 10),
        "setup_retry_delay_sec": _SECONDS,
        "thinking": _EFFORT,
        "timeout": _SECONDS,
        "timeout_sec": _SECONDS,
    },
    "code-puppy": {"reasoning_effort": _EFFORT},
    "codex": {
        "dangerously_bypass_hook_trust": FLAG,
        "disable_web_search": FLAG,
        "reasoning_effort": _EFFORT,
        "reasoning_summary": text(32),
        "web_search": text(32),
    },
    "copilot-cli": {"disable_web_search": FLAG, "reasoning_effort": _EFFORT},
    "cortex-code": {
        "allowed_tools": words(),
        "cli_mode": text(100),
        "disable_web_search": FLAG,
        "disallowed_tools": words(),
    },
    "cursor-cli": {"mode": one_of("plan", "ask"), "pricing": document(4096), "reasoning_effort": _EFFORT},
    "deerflow": {
        "disable_web_search": FLAG,
        "plan_mode": FLAG,
        "recursion_limit": whole(1, 100_000),
        "subagent": FLAG,
        "summarize": FLAG,
        "thinking": FLAG,
        "workdir": text(1000),
    },
    "devin": {},
    "fx": {"max_agent_steps": _TURNS, "permission_mode": text(32), "reasoning_effort": _EFFORT},
    "fx-dev": {
        "max_agent_steps": _TURNS,
        "permission_mode": text(32),
        "reasoning_effort": _EFFORT,
        "trace_log": text(1000),
        "trace_scopes": text(),
    },
    "gemini-cli": {"disable_web_search": FLAG, "reasoning_effort": _EFFORT, "sandbox": FLAG},
    "goose": {
        "context_limit": _TOKENS,
        "max_tokens": _TOKENS,
        "max_turns": _TURNS,
        "reasoning_effort": _EFFORT,
        "temperature": number(0, 10),
    },
    "grok-build": {
        "background_wait_sec": _SECONDS,
        "disable_web_search": FLAG,
        "grok_config": document(),
        "kill_leftover_processes": FLAG,
        "max_turns": _TURNS,
        "reasoning_effort": _EFFORT,
    },
    "hermes": {"max_turns": _TURNS, "toolsets": text()},
    "junie": {
        "brave": FLAG,
        "channel": one_of("stable", "eap"),
        "guidelines_filename": text(1000),
        "json_output": FLAG,
        "output_format": one_of("text", "json"),
        "share_anonymous_statistics": FLAG,
        "timeout_ms": whole(0, 604_800_000),
    },
    "kimi-cli": {"model_info": MODEL_INFO},
    "kimi-code": {},
    "mcode": {
        "api_format": one_of("anthropic-messages", "openai-completions"),
        "context_window": _TOKENS,
        "max_output_tokens": _TOKENS,
        "max_steps": _TURNS,
        "permission_mode": text(32),
    },
    "mimo": {"disable_web_search": FLAG, "mimo_config": document(), "variant": text(100)},
    "mini-swe-agent": {
        "config_file": FILE,
        "cost_limit": _MONEY,
        "litellm_model_registry": document(),
        "max_tokens": _TOKENS,
        "reasoning_effort": _EFFORT,
    },
    "muse-code": {"max_model_steps": _TURNS, "reasoning_effort": _EFFORT},
    "nemo-agent": {
        "config_file": FILE,
        "llm_type": one_of("nim", "openai", "azure_openai", "litellm", "huggingface_inference", "dynamo"),
        "verbose": one_of("debug", "info", "warning", "error"),
    },
    "openclaw": {
        "disable_web_search": FLAG,
        "failover_retries": whole(0, 100),
        "openclaw_agent_id": text(100),
        "openclaw_config": document(),
        "session_to_trajectory": FLAG,
        "thinking": _EFFORT,
        "timeout": _SECONDS,
    },
    "opencode": {"disable_web_search": FLAG, "opencode_config": document(), "variant": text(100)},
    "openhands": {
        "caching_prompt": FLAG,
        "disable_tool_calls": FLAG,
        "disable_vision": FLAG,
        "drop_params": FLAG,
        "max_budget_per_task": _MONEY,
        "max_iterations": _TURNS,
        "model_info": MODEL_INFO,
        "num_retries": whole(0, 100),
        "python_version": VERSION,
        "reasoning_effort": _EFFORT,
        "temperature": number(0, 10),
        "top_p": number(0, 1),
        "trajectory_config": fields({"raw_content": FLAG, "linear_history": FLAG}),
    },
    "openhands-sdk": {
        "collect_token_ids": FLAG,
        "load_skills": FLAG,
        "max_iterations": _TURNS,
        "python_version": VERSION,
        "reasoning_effort": _EFFORT,
        "skill_paths": words(1000),
        "temperature": number(0, 10),
    },
    "pi": {"max_turns": _TURNS, "model_api": text(100), "thinking": _EFFORT},
    "qwen-coder": {},
    "rovodev-cli": {"max_thinking_tokens": _TOKENS},
    "swe-agent": {
        "max_input_tokens": _TOKENS,
        "per_instance_cost_limit": _MONEY,
        "reasoning_effort": _EFFORT,
        "temperature": number(0, 10),
        "top_p": number(0, 1),
        "total_cost_limit": _MONEY,
    },
    "trae-agent": {
        "max_steps": _TURNS,
        "max_tokens": _TOKENS,
        "temperature": number(0, 10),
        "top_k": whole(-1, 1_000_000),
        "top_p": number(0, 1),
    },
    "vibe": {
        "backend": one_of("mistral", "generic"),
        "max_price": _MONEY,
        "max_tokens": _TOKENS,
        "max_turns": _TURNS,
        "temperature": number(0, 10),
        "thinking": _EFFORT,
    },
}

ALLOWED: Mapping[str, Options] = MappingProxyType(
    {
        "oracle": {},
        "nop": {},
        "terminus-2": _TERMINUS,
        "computer-1": _COMPUTER,
        **{name: {**_INSTALLED, **own} for name, own in _OF_AGENT.items()},
    }
)

AT_THE_MACHINE_ONLY: Mapping[str, str] = MappingProxyType(
    {
        "acp": "it fetches what it runs with the worker's network and credentials",
        "dspy-rlm": "it runs code that the model writes outside of the sandbox",
        "eve": "it uploads a folder of the worker's machine",
        "langgraph": "it uploads a folder of the worker's machine",
        "strands": "it loads a Python file of the worker's machine",
    }
)
"""Agents that callers of the service may not name, and why."""

_HOST_FILE = "it names a file of the worker's machine"
_FETCHES = "it names an address that code is fetched from"
_LOOSE = "it changes how the worker calls the model: its address, headers and credentials"
EVERYWHERE: Mapping[str, str] = MappingProxyType(
    {
        "prompt_template_path": f"{_HOST_FILE}, which the worker runs as a template",
        "load_trajectory": _HOST_FILE,
        "memory_dir": _HOST_FILE,
        "skills_dir": _HOST_FILE,
        "mcp_servers": "servers belong to the task",
        "extra_env": "variables have a field of their own, env",
        "extra_headers": _LOOSE,
        "session_id_headers": _LOOSE,
        "llm_kwargs": _LOOSE,
        "api_key": "keys come in a header, X-Provider-Key",
    }
)
"""Options that callers of the service may not set for any agent, and why."""
REFUSED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "antigravity-cli": {"binary_path": _HOST_FILE},
        "cline-cli": {
            "tarball_path": _HOST_FILE,
            "plugin_tarball_path": _HOST_FILE,
            "tarball_url": _FETCHES,
            "plugin_tarball_url": _FETCHES,
            "plugin_source": _FETCHES,
            "github_user": _FETCHES,
            "commit_hash": _FETCHES,
        },
        "computer-1": {
            "aws_region_name": "it uses the worker's own cloud credentials",
            "env_io_dir": "the worker reads and writes there",
        },
        "deerflow": {
            "config_path": _HOST_FILE,
            "repo_url": _FETCHES,
            "repo_ref": _FETCHES,
            "openrouter_base_url": "give the model's address as api_base",
        },
        "mini-swe-agent": {"litellm_model_registry_file": _HOST_FILE},
        "nemo-agent": {"workflow_package": _HOST_FILE, "nat_repo": _FETCHES},
        "openhands": {"git_version": _FETCHES},
        "swe-agent": {"completion_kwargs": _LOOSE},
    }
)
"""Further options of single agents that callers of the service may not set, and why."""

HARMLESS_VARIABLES = frozenset(
    {"COLUMNS", "DEBIAN_FRONTEND", "LANG", "LANGUAGE", "LC_ALL", "LINES", "NO_COLOR", "PAGER", "TERM", "TZ"}
)
OWN_PREFIX = "JOB_"
"""Prefix of the caller's own variables. No agent reads such a name."""
VARIABLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": frozenset({"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "DISABLE_PROMPT_CACHING", "MAX_THINKING_TOKENS"}),
        "goose": frozenset({"GOOSE_MAX_TOKENS", "GOOSE_TEMPERATURE"}),
        "grok-build": frozenset({"RUST_LOG"}),
        "kimi-cli": frozenset({"KIMI_MODEL_MAX_CONTEXT_SIZE"}),
        "openhands": frozenset({"LLM_TEMPERATURE", "LLM_TOP_P", "MAX_ITERATIONS"}),
        "vibe": frozenset({"VIBE_INPUT_PRICE", "VIBE_OUTPUT_PRICE"}),
    }
)
"""Further variables of installed agents. Others select files of the worker (CODEX_AUTH_JSON_PATH,
GEMINI_OAUTH_CREDS_PATH, GOOGLE_APPLICATION_CREDENTIALS, CODEX_FORCE_AUTH_JSON), addresses, or credentials."""
ANY_VARIABLE = frozenset({"oracle", "nop", "terminus-2", "computer-1"})
"""Agents that pass variables to the sandbox and read none of them on the worker."""


def file_options(agent: str) -> frozenset[str]:
    """Options of an agent that are files; a job may send their content."""
    return frozenset(name for name, kind in ALLOWED.get(agent, {}).items() if kind.is_file)
