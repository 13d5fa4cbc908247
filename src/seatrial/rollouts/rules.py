"""Options of rollouts that the task does not decide."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.rollouts.transcript import LONGEST_ANSWER


class RolloutRules(Frozen):
    """Set by the code that loads an environment."""

    sandbox: Literal["auto", "oci", "docker"] = "auto"
    """Where rollouts run."""
    timeout_multiplier: float = Field(default=1.0, gt=0)
    """Multiplier for all time limits of the task."""
    grace_sec: float = Field(default=0.0, ge=0)
    """Extra time beyond the task's limit, for a framework that applies that limit itself. The sandbox ends the
    rollout only after this."""
    command_timeout_sec: float | None = Field(default=300.0, gt=0)
    """Timeout of one command; ``None``: only the task's limit applies."""
    longest_answer: int = Field(default=LONGEST_ANSWER, gt=0)
    """Maximum characters that ``execute_commands`` returns; the end is kept."""
    force_build: bool = False
    """Build the Dockerfile even if the task names an image."""
