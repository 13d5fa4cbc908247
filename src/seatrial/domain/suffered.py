"""What a try suffered from the machine and from the model's service. No reward depends on it."""

from __future__ import annotations

from pydantic import Field

from seatrial.domain.frozen import Frozen


class Suffered(Frozen):
    """What slowed a try down that is not its own work. ``None``: it could not be measured."""

    throttled_sec: float | None = Field(default=None, ge=0)
    """Seconds in which the processor limit of the sandbox stopped its processes."""
    memory_pressure: int | None = Field(default=None, ge=0)
    """How often the sandbox reached its memory limit."""
    model_wait_sec: float | None = Field(default=None, ge=0)
    """Seconds in which the agent waited for answers of the model. Agents that run in the worker report it."""
    pace_wait_sec: float | None = Field(default=None, ge=0)
    """Seconds in which calls waited for their turn, because the provider limits the pace. Part of the model wait."""
