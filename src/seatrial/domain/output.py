"""Live output of a running try. After the try it is stored in full as files."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from seatrial.domain.frozen import Frozen

RING_PIECES = 400
"""The newest pieces of a running trial that are kept; writers keep each piece small."""


class OutputStream(StrEnum):
    TERMINAL = "terminal"
    """The agent's terminal with escape sequences, as an asciinema recording."""
    AGENT = "agent"
    """The agent's own logs."""
    VERIFIER = "verifier"
    """Output of the task's tests."""
    BUILD = "build"
    """Output of the image build."""
    LOG = "log"
    """The trial's own log."""


class NewOutput(Frozen):
    trial_id: int
    attempt: int
    """The number of the try, under the name that the API gives it."""
    stream: OutputStream
    text: str


class Output(NewOutput):
    seq: int
    """Order of the piece over all trials."""
    at: datetime
