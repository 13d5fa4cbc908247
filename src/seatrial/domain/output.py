"""What a running attempt writes, piece by piece, for those who watch. Kept in full as files once the attempt ended."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from seatrial.domain.frozen import Frozen

RING_PIECES = 400
"""So many of its newest pieces are there of a running trial; whoever writes them keeps each small."""


class OutputStream(StrEnum):
    TERMINAL = "terminal"
    """What the agent's terminal showed, with its escape sequences: an asciinema recording in the making."""
    AGENT = "agent"
    """What the agent wrote into its own logs."""
    VERIFIER = "verifier"
    """What the task's tests printed."""
    BUILD = "build"
    """What the build of the image printed."""
    LOG = "log"
    """What the trial itself logged."""


class NewOutput(Frozen):
    trial_id: int
    attempt: int
    stream: OutputStream
    text: str


class Output(NewOutput):
    seq: int
    """Over all trials, in the order in which the pieces were written."""
    at: datetime
