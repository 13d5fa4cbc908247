"""What the tests of tests/agents show. Written by `make reference` from tests/agents/registry.py."""

from __future__ import annotations

from collections.abc import Mapping

PROVEN: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "claude-code": (("2.1.325", "anthropic/claude-sonnet-4-5", "messages"),),
    "codex": (("0.166.0", "openai/gpt-5.1", "responses"),),
    "gemini-cli": (("0.61.0", "gemini/gemini-2.5-pro", "gemini"),),
    "mini-swe-agent": (("2.4.6", "openai/gpt-4o", "chat"),),
    "vibe": (("2.17.1", "mistral/devstral-medium-latest", "chat"),),
}
"""By agent: version, model and wire format."""
