"""The wire formats that scripted models speak. Each reads requests into one shape, and writes answers from one.

They are written apart from ``gateway.wire``, and share no code with it, so that each tests the other.
"""

from __future__ import annotations

from seatrial.scripted_models.formats.chat import Chat
from seatrial.scripted_models.formats.format import Format
from seatrial.scripted_models.formats.gemini import Gemini
from seatrial.scripted_models.formats.messages import Messages
from seatrial.scripted_models.formats.responses import Responses

FORMATS: tuple[Format, ...] = (Chat(), Responses(), Messages(), Gemini())

__all__ = ["FORMATS", "Format"]
