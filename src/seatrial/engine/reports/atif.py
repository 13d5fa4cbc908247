"""Harbor's trajectories (ATIF), as far as conversations are read from them.

``conversation`` and ``export`` make messages of them. They were written inside a sandbox's reach, so whatever does not
look like one is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLES = {"agent": "assistant", "user": "user", "system": "system"}
"""Who speaks in a step, in the words of chat messages."""


def spoken_steps(trajectory: Any) -> list[Mapping[str, Any]]:
    """The steps in which somebody speaks."""
    steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    return [step for step in items(steps) if isinstance(step, Mapping) and _speaker(step) in ROLES]


def _speaker(step: Mapping[str, Any]) -> str:
    source = step.get("source")
    return source if isinstance(source, str) else ""


def results(step: Mapping[str, Any]) -> list[Any]:
    """What came back in a step: the terminal's screen, a tool's output."""
    observation = step.get("observation")
    return items(observation.get("results")) if isinstance(observation, Mapping) else []


def text_of(content: Any) -> str:
    """A text, or the texts of a message in parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
