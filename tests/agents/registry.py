"""The real programs that the tests of this folder run, with what each test shows.

`make reference` writes the table of ``seatrial agents`` and of docs/reference/agents.md from this list, so neither can
claim more than the tests show.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Proof:
    """One agent that solves a sample in the ``oci`` sandbox, without a network and through the gate."""

    agent: str
    version: str
    model: str
    """LiteLLM's name. The scripted server plays it."""
    format: str
    source: str
    """Where the program comes from."""
    options: dict[str, str] = field(default_factory=dict)
    has_trajectory: bool = True
    """Whether Harbor's class of this agent writes one."""

    @property
    def script_name(self) -> str:
        """What the provider calls the model."""
        return self.model.partition("/")[2]


PROOFS: tuple[Proof, ...] = (
    Proof("claude-code", "2.1.325", "anthropic/claude-sonnet-4-5", "messages", "npm"),
    Proof("codex", "0.166.0", "openai/gpt-5.1", "responses", "npm"),
    Proof("gemini-cli", "0.61.0", "gemini/gemini-2.5-pro", "gemini", "npm"),
    Proof("mini-swe-agent", "2.4.6", "openai/gpt-4o", "chat", "PyPI"),
    Proof("vibe", "2.17.1", "mistral/devstral-medium-latest", "chat", "PyPI"),
)
