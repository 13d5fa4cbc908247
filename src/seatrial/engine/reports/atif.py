"""Reads conversations from Harbor's trajectories (ATIF), for ``conversation`` and ``export``.

A trajectory comes from a sandbox and is untrusted, so everything that has another form is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLES = {"agent": "assistant", "user": "user", "system": "system"}
"""The role of a chat message, by the source of a step."""


def spoken_steps(trajectory: Any) -> list[Mapping[str, Any]]:
    """The steps that contain a message."""
    steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    return [step for step in items(steps) if isinstance(step, Mapping) and _speaker(step) in ROLES]


def _speaker(step: Mapping[str, Any]) -> str:
    source = step.get("source")
    return source if isinstance(source, str) else ""


def results(step: Mapping[str, Any]) -> list[Any]:
    """The observations of a step: the terminal's screen, the output of a tool."""
    observation = step.get("observation")
    return items(observation.get("results")) if isinstance(observation, Mapping) else []


def text_of(content: Any) -> str:
    """A text, or the joined texts of a message with several parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
