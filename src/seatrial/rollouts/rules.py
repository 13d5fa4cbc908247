"""How rollouts are run, where the task itself does not say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.rollouts.transcript import LONGEST_ANSWER


class RolloutRules(Frozen):
    """Decided by whoever loads an environment."""

    sandbox: Literal["auto", "oci", "docker"] = "auto"
    """Where rollouts run."""
    timeout_multiplier: float = Field(default=1.0, gt=0)
    """Stretches or shrinks every limit of the task; its own hold at 1."""
    grace_sec: float = Field(default=0.0, ge=0)
    """Time beyond the task's limit for the attempt, for a framework that holds that limit by itself: only then the
    sandbox ends it, so that nothing stays for ever."""
    command_timeout_sec: float | None = Field(default=300.0, gt=0)
    """Longest time of one command; ``None`` leaves it to the task's limit for the whole attempt."""
    longest_answer: int = Field(default=LONGEST_ANSWER, gt=0)
    """Characters that one call of ``execute_commands`` may answer with; the end is kept."""
    force_build: bool = False
    """Builds the Dockerfile even where the task names an image."""
