"""Keeps the token ids and logprobs of a trial's answers, where a server gives them: a line for each call."""

from __future__ import annotations

import json
from pathlib import Path

from seatrial.domain.model_calls.replay import TOKENS_FILE
from seatrial.gateway.bounded_lines import BoundedLines
from seatrial.gateway.wire import AnswerTokens

MOST_BYTES = 256 * 1024 * 1024
"""Of one try. Each call may tell the ids of its whole prompt."""


class TokenRecord:
    """Of one try."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._lines = BoundedLines(folder / TOKENS_FILE, most_bytes)

    def keep(self, number: int, tokens: AnswerTokens) -> bool:
        """Whether all of it was kept. The first calls are, up to a limit."""
        line = json.dumps({"call": number, **tokens.told()}, separators=(",", ":")).encode() + b"\n"
        return tokens.is_whole and self._lines.write(line)

    def close(self) -> None:
        self._lines.close()
