"""Which agents have a kit, and what Harbor's class expects of a sandbox in which its agent is installed.

Harbor's class still runs the agent and reads its trajectory. Here is only what its installation would have left: a
command on the search path, and files that its commands read first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from seatrial.errors import InvalidInput

LATEST = "latest"
_NVM = "~/.nvm/nvm.sh"
_LOCAL_ENV = "~/.local/bin/env"
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_GEMINI_SETTINGS = (
    "mkdir -p ~/.gemini && { test -e ~/.gemini/settings.json"
    """ || printf '{"experimental": {"skills": true}}\\n' > ~/.gemini/settings.json; }"""
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the kit of one agent is made."""

    agent: str
    """Harbor's name."""
    runtime: Literal["node", "python"]
    package: str
    program: str
    """The command that Harbor's class calls, and that the package has."""
    usual: str = LATEST
    """The version if none is named."""
    also: tuple[str, ...] = ()
    """Further packages."""
    without: tuple[str, ...] = ()
    """Directories of packages that the agent does not need."""
    preludes: tuple[str, ...] = ()
    """Files that Harbor's commands read before they call the program."""
    after: str = ""
    """A command of Harbor's installation that is still needed, as the agent's user."""
    native: str = ""
    """The package, with ``*`` for the platform, whose program is the agent itself. Node is then not needed."""


RECIPES = {
    recipe.agent: recipe
    for recipe in (
        Recipe(
            "claude-code", "node", "@anthropic-ai/claude-code", "claude", native="@anthropic-ai/claude-code-*/claude"
        ),
        Recipe("codex", "node", "@openai/codex", "codex"),
        Recipe("gemini-cli", "node", "@google/gemini-cli", "gemini", after=_GEMINI_SETTINGS),
        Recipe("qwen-coder", "node", "@qwen-code/qwen-code", "qwen", preludes=(_NVM,)),
        Recipe("opencode", "node", "opencode-ai", "opencode", native="opencode-linux-*/bin/opencode"),
        Recipe(
            "mini-swe-agent",
            "python",
            "mini-swe-agent",
            "mini-swe-agent",
            usual="2.4.6",
            also=("orjson", "fastapi", "mcp"),  # LiteLLM needs them for tool calls without declaring them
            # Only for running benchmarks with mini-swe-agent itself; two thirds of its size.
            without=("pyarrow", "pandas", "numpy", "numpy.libs", "datasets", "botocore", "hf_xet"),
            preludes=(_LOCAL_ENV,),
        ),
        Recipe("aider", "python", "aider-chat", "aider", preludes=(_LOCAL_ENV,)),
        Recipe("vibe", "python", "mistral-vibe", "vibe"),
    )
}


def wanted_version(recipe: Recipe, version: str | None) -> str:
    """The version to ask for. Raises ``InvalidInput`` for a text that a package tool could read as something else."""
    wanted = version or recipe.usual
    if not _VERSION.fullmatch(wanted):
        raise InvalidInput(f"{wanted!r} is not a version of {recipe.agent}.", field="version")
    return wanted
