"""The full record of a trial's calls: what was asked and answered, in one file of lines, for people and for replay.

A call is several lines, which lines of other calls may separate: the request, the head of its answer, the pieces of the
answer as they came, and the end. Nothing waits in memory for the end of a call, and a killed worker loses the last line
at most. An answer without an end was not received completely.

The file is bounded. Once a line does not fit, no further call is recorded, so a record holds the first calls of a trial
without gaps. ``calls.jsonl`` says which calls it has.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seatrial.domain.model_calls.replay import RECORD_FILE
from seatrial.engine.trials.redaction import Redaction
from seatrial.gateway.bounded_lines import BoundedLines
from seatrial.gateway.head import Fields
from seatrial.gateway.wire import DIGEST_RULES

MOST_BYTES = 256 * 1024 * 1024
"""Of one try. A request repeats the conversation so far: this holds 1,000 calls of 256 KB."""
HEAD = "digests"
"""In the first line: by which rules the digests were made."""
_KEPT_FIELDS = frozenset(
    {
        *("content-type", "content-encoding", "retry-after", "retry-after-ms", "x-should-retry"),
        *("request-id", "x-request-id", "anthropic-request-id", "openai-model", "openai-processing-ms"),
    }
)
"""Headers of an answer that clients read. Rate limits, cookies and dates are left out: they hold only once."""


class Recording:
    """Of one try. Secrets are taken out before anything is written."""

    def __init__(self, folder: Path, secrets: Iterable[str], most_bytes: int = MOST_BYTES) -> None:
        first = json.dumps({HEAD: DIGEST_RULES}).encode() + b"\n"
        self._lines = BoundedLines(folder / RECORD_FILE, most_bytes, first)
        self._calls = 0
        self.redaction = Redaction(secrets)

    def call(self, path: str, digest: str, request: str) -> RecordedCall:
        """Begins a call with what the agent sent."""
        self._calls += 1
        asked = self.redaction.clean(request.encode()).decode(errors="replace")
        return RecordedCall(self, self._calls, {"path": path, "digest": digest, "request": asked})

    def write(self, line: dict[str, Any]) -> bool:
        """``False`` if the line did not fit."""
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
        return self._lines.write(text.encode() + b"\n")

    def close(self) -> None:
        self._lines.close()


class RecordedCall:
    """One call. ``is_kept`` says whether all of it was written so far."""

    def __init__(self, recording: Recording, number: int, asked: dict[str, Any]) -> None:
        self._recording = recording
        self._number = number
        self._pending = b""
        self.is_kept = True
        self._write(asked)

    def head(self, status: int, fields: Fields) -> None:
        self._write({"status": status, "headers": [field for field in fields if field[0] in _KEPT_FIELDS]})

    def piece(self, data: bytes) -> None:
        """A secret may be split over two pieces, so the possible beginning of one waits for the next piece."""
        self._pending += data
        safe = self._recording.redaction.safe_end(self._pending)
        self._piece(self._pending[:safe])
        self._pending = self._pending[safe:]

    def whole(self, status: int, fields: Fields, body: bytes) -> None:
        self.head(status, fields)
        self.piece(body)

    def abandon(self) -> None:
        """The agent did not get the whole answer, so a replay cannot repeat it."""
        self.is_kept = False

    def end(self, error: str | None, *, over_budget: bool, broken: bool, given_up: bool) -> None:
        """``broken``: the connection to the agent was cut. ``given_up``: the model's service failed for too long."""
        self._piece(self._pending)
        self._pending = b""
        how = {"error": error, "over_budget": over_budget, "broken": broken, "given_up": given_up}
        self._write({"end": {name: value for name, value in how.items() if value}})

    def _piece(self, data: bytes) -> None:
        if data:
            self._write(written(self._recording.redaction.clean(data)))

    def _write(self, line: dict[str, Any]) -> None:
        self.is_kept = self.is_kept and self._recording.write({"n": self._number, **line})


def written(data: bytes) -> dict[str, str]:
    """Bytes as a part of a line."""
    try:
        return {"piece": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def read_bytes(line: dict[str, Any]) -> bytes | None:
    """The bytes of such a part; ``None`` if the line has none."""
    text, coded = line.get("piece"), line.get("bytes")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    return base64.b64decode(coded) if isinstance(coded, str) else None
