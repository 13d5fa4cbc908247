"""Agent options and environment variables that callers of the service may set.

Only these reach an agent's constructor, unless the job was submitted on the machine itself. Harbor's agents run in the
worker's process: an option with a path reads a file of the worker, one with a class name imports it. A test compares
this table with Harbor's own lists, so every new option must be either allowed or refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seatrial.domain.agents.option_kinds import (
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


def _each(kind: Kind, names: str) -> Options:
    return dict.fromkeys(names.split(), kind)


MODEL_INFO = fields(
    _each(
        number(0),
        "cache_creation_input_token_cost cache_read_input_token_cost input_cost_per_token max_input_tokens"
        " max_output_tokens max_tokens output_cost_per_token",
    )
)
"""Numbers only: other fields change how LiteLLM calls models for all trials of a worker."""

_KINDS: Options = {
    **_each(
        FLAG,
        "auto_lint auto_test brave cache_prompts caching_prompt collect_rollout_details collect_token_ids"
        " dangerously_bypass_hook_trust disable_tool_calls disable_vision disable_web_search drop_params"
        " enable_episode_logging enable_images enable_summarize gemini_auto_ack_safety interleaved_thinking json_output"
        " kill_leftover_processes load_skills plan_mode record_terminal_session sandbox session_to_trajectory"
        " share_anonymous_statistics store_all_messages stream subagent summarize suppress_max_turns_warning"
        " use_responses_api",
    ),
    **_each(
        whole(0, 100_000_000),  # tokens
        "context_limit context_window map_tokens max_completion_tokens max_input_tokens max_output_tokens"
        " max_thinking_tokens max_tokens proactive_summarization_threshold thinking_tokens",
    ),
    **_each(
        whole(1, 100_000),  # turns
        "episodes max_agent_steps max_episodes max_iterations max_model_steps max_steps max_turns recursion_limit",
    ),
    **_each(
        number(0, 604_800),  # seconds
        "agent_timeout_sec background_wait_sec cline_timeout_sec runtime_action_timeout_sec"
        " runtime_readiness_timeout_sec runtime_request_timeout_sec setup_command_timeout_sec setup_retry_delay_sec"
        " timeout timeout_sec",
    ),
    **_each(
        number(0, 1_000_000),  # dollars
        "cost_limit max_budget_per_task max_budget_usd max_price per_instance_cost_limit total_cost_limit",
    ),
    **_each(whole(100, 10_000), "desktop_height desktop_width window_height window_width"),
    **_each(whole(0, 10_000), "window_x window_y"),
    **_each(whole(10, 1000), "tmux_pane_height tmux_pane_width"),
    **_each(whole(0, 100), "failover_retries num_retries"),
    **_each(number(-10, 10), "frequency_penalty presence_penalty repetition_penalty"),
    **_each(number(0, 1), "min_p top_p"),
    **_each(
        text(32),
        "permission_mode reasoning_effort reasoning_summary thinking thinking_display verbosity web_search",
    ),
    **_each(text(100), "cli_mode model_api openclaw_agent_id variant"),
    **_each(text(200), "fallback_model session_id"),
    **_each(text(1000), "guidelines_filename trace_log workdir"),
    **_each(text(), "allowed_tools disallowed_tools test_cmd toolsets trace_scopes"),
    **_each(words(), "allowed_openai_params extra_tools"),
    **_each(words(1000), "skill_paths stop"),
    **_each(document(), "config grok_config litellm_model_registry mimo_config openclaw_config opencode_config"),
    **_each(document(16 << 10), "extra_body logit_bias"),
    **_each(ADDRESS, "api_base base_url"),
    **_each(VERSION, "cline_version python_version version"),
    "api_format": one_of("anthropic-messages", "openai-completions"),
    "append_system_prompt": text(32 << 10),
    "backend": one_of("mistral", "generic"),
    "channel": one_of("stable", "eap"),
    "config_file": FILE,
    "llm_backend": one_of("litellm"),
    "llm_type": one_of("nim", "openai", "azure_openai", "litellm", "huggingface_inference", "dynamo"),
    "max_consecutive_mistakes": whole(0, 1000),
    "mode": one_of("plan", "ask"),
    "model_info": MODEL_INFO,
    "n": whole(1, 16),
    "output_format": one_of("text", "json"),
    "parser_name": one_of("json", "xml"),
    "pricing": document(4096),
    "provider": one_of("generic", "anthropic", "gemini", "openai"),
    "seed": whole(-(2**63), 2**63 - 1),
    "setup_retries": whole(0, 10),
    "start_url": text(2000),
    "temperature": number(0, 10),
    "timeout_ms": whole(0, 604_800_000),
    "top_k": whole(-1, 1_000_000),
    "trajectory_config": fields({"raw_content": FLAG, "linear_history": FLAG}),
    "verbose": one_of("debug", "info", "warning", "error"),
}
"""The kind of each option. A name has the same kind for every agent, except where an agent below overrides it.
``config`` is always an object: a string would be a path."""


def _options(names: str, **overrides: Kind) -> Options:
    return {name: _KINDS[name] for name in names.split()} | overrides


CALL_OPTIONS: Options = _options(
    "allowed_openai_params extra_body frequency_penalty logit_bias max_completion_tokens max_tokens min_p n"
    " presence_penalty repetition_penalty seed stop temperature timeout top_k top_p verbosity",
    thinking=document(1000),
)
"""Options of each model call that the worker makes."""

_CHAT: Options = _options(
    "api_base base_url collect_rollout_details max_thinking_tokens max_turns model_info reasoning_effort session_id"
    " temperature use_responses_api",
    llm_call_kwargs=fields(CALL_OPTIONS),
)
TERMINUS: Options = {
    **{name: kind for name, kind in CALL_OPTIONS.items() if name != "allowed_openai_params"},
    **_CHAT,
    **_options(
        "enable_summarize episodes interleaved_thinking llm_backend max_episodes parser_name"
        " proactive_summarization_threshold record_terminal_session store_all_messages suppress_max_turns_warning"
        " tmux_pane_height tmux_pane_width trajectory_config"
    ),
}
_COMPUTER: Options = {
    **_CHAT,
    **_options(
        "desktop_height desktop_width enable_episode_logging enable_images extra_tools gemini_auto_ack_safety provider"
        " runtime_action_timeout_sec runtime_readiness_timeout_sec runtime_request_timeout_sec start_url window_height"
        " window_width window_x window_y"
    ),
}

_INSTALLED: Mapping[str, Options] = {
    "aider": _options("auto_lint auto_test cache_prompts map_tokens reasoning_effort stream test_cmd thinking_tokens"),
    "antigravity-cli": _options("reasoning_effort sandbox"),
    "antigravity-sdk": _options("load_skills reasoning_effort skill_paths"),
    "claude-code": _options(
        "allowed_tools append_system_prompt disable_web_search disallowed_tools fallback_model max_budget_usd"
        " max_thinking_tokens max_turns permission_mode reasoning_effort thinking_display"
    ),
    "cline-cli": _options(
        "agent_timeout_sec cline_timeout_sec cline_version max_consecutive_mistakes reasoning_effort"
        " setup_command_timeout_sec setup_retries setup_retry_delay_sec thinking timeout timeout_sec"
    ),
    "code-puppy": _options("reasoning_effort"),
    "codex": _options("dangerously_bypass_hook_trust disable_web_search reasoning_effort reasoning_summary web_search"),
    "copilot-cli": _options("disable_web_search reasoning_effort"),
    "cortex-code": _options("cli_mode disable_web_search", allowed_tools=words(), disallowed_tools=words()),
    "cursor-cli": _options("mode pricing reasoning_effort"),
    "deerflow": _options("disable_web_search plan_mode recursion_limit subagent summarize workdir", thinking=FLAG),
    "devin": {},
    "fx": _options("max_agent_steps permission_mode reasoning_effort"),
    "fx-dev": _options("max_agent_steps permission_mode reasoning_effort trace_log trace_scopes"),
    "gemini-cli": _options("disable_web_search reasoning_effort sandbox"),
    "goose": _options("context_limit max_tokens max_turns reasoning_effort temperature"),
    "grok-build": _options(
        "background_wait_sec disable_web_search grok_config kill_leftover_processes max_turns reasoning_effort"
    ),
    "hermes": _options("max_turns toolsets"),
    "junie": _options(
        "brave channel guidelines_filename json_output output_format share_anonymous_statistics timeout_ms"
    ),
    "kimi-cli": _options("model_info"),
    "kimi-code": {},
    "mcode": _options("api_format context_window max_output_tokens max_steps permission_mode"),
    "mimo": _options("disable_web_search mimo_config variant"),
    "mini-swe-agent": _options("config_file cost_limit litellm_model_registry max_tokens reasoning_effort"),
    "muse-code": _options("max_model_steps reasoning_effort"),
    "nemo-agent": _options("config_file llm_type verbose"),
    "openclaw": _options(
        "disable_web_search failover_retries openclaw_agent_id openclaw_config session_to_trajectory thinking timeout"
    ),
    "opencode": _options("disable_web_search opencode_config variant"),
    "openhands": _options(
        "caching_prompt disable_tool_calls disable_vision drop_params max_budget_per_task max_iterations"
        " model_info num_retries python_version reasoning_effort temperature top_p trajectory_config"
    ),
    "openhands-sdk": _options(
        "collect_token_ids load_skills max_iterations python_version reasoning_effort skill_paths temperature"
    ),
    "pi": _options("max_turns model_api thinking"),
    "qwen-coder": {},
    "rovodev-cli": _options("max_thinking_tokens"),
    "swe-agent": _options(
        "max_input_tokens per_instance_cost_limit reasoning_effort temperature top_p total_cost_limit"
    ),
    "trae-agent": _options("max_steps max_tokens temperature top_k top_p"),
    "vibe": _options("backend max_price max_tokens max_turns temperature thinking"),
}
"""Agents that are installed into the sandbox, with their own options."""
_OF_EVERY_INSTALLED = _options("api_base base_url version config")

ALLOWED: Mapping[str, Options] = MappingProxyType(
    {
        "oracle": {},
        "nop": {},
        "terminus-2": TERMINUS,
        "computer-1": _COMPUTER,
        **{name: {**_OF_EVERY_INSTALLED, **own} for name, own in _INSTALLED.items()},
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
