"""Reads the model calls of a running try from ``calls.jsonl``, to which the gate adds a line when a call has ended.

``engine.live.watch`` calls it. Each event has the next lines and the sums so far, so a listener needs to add nothing
up. It is the same for every agent, because the gate writes the file.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from seatrial.domain.event import EventKind, NewEvent
from seatrial.domain.model_calls.model_call import CALLS_FILE, CallSums, ModelCall
from seatrial.domain.trial import Trial
from seatrial.engine.trials.redaction import Redaction

_EVERY_SEC = 1.0
_MOST_AT_ONCE = 20
"""Calls in one event. Further ones wait for the next look."""
_MOST_AT_END = 200
_LARGEST = 256 * 1024
"""Bytes of one look."""
_NOT_TOLD = {"request_digest", "format", "provider"}
_LONGEST_ERROR = 300


class CallLog:
    """The calls of one try."""

    def __init__(
        self, trial: Trial, directory: Path, redaction: Redaction, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._timer = timer
        self._trial = trial
        self._redaction = redaction
        self._path = f"{directory}/{CALLS_FILE}"
        self._place = 0
        self._sums = CallSums()
        self._not_before = 0.0

    def read(self, last: bool = False) -> list[NewEvent]:
        """Blocking. New calls since the last look; at most once a second."""
        now = self._timer()
        if now < self._not_before and not last:
            return []
        calls = list(self._new_calls(_MOST_AT_END if last else _MOST_AT_ONCE))
        if not calls:
            return []
        self._not_before = now + _EVERY_SEC
        return [
            NewEvent(
                kind=EventKind.TRIAL_CALLS,
                job_id=self._trial.job_id,
                trial_id=self._trial.id,
                attempt=self._trial.try_number,
                data={"calls": [_told(call) for call in calls], "sums": _sums(self._sums)},
            )
        ]

    def _new_calls(self, most: int) -> Iterator[ModelCall]:
        lines = _after(self._path, self._place).splitlines(keepends=True)[:most]
        for line in lines:
            if not line.endswith(b"\n"):  # the rest of it is not written yet
                return
            self._place += len(line)
            with suppress(ValueError, RecursionError):
                content = json.loads(self._redaction.clean(line))
                if isinstance(content, dict):
                    content.pop("call", None)
                    call = ModelCall.model_validate(content)
                    self._sums = self._sums.and_also(call)
                    yield call


def _told(call: ModelCall) -> dict[str, Any]:
    found = call.model_dump(mode="json", exclude_none=True, exclude=_NOT_TOLD)
    if call.error is not None:
        found["error"] = call.error[:_LONGEST_ERROR]
    return found


def _sums(sums: CallSums) -> dict[str, Any]:
    """Of all calls of the try so far."""
    return sums.model_dump(mode="json", exclude_none=True)


def _after(path: str, place: int) -> bytes:
    """The file from that place on, as far as one look goes."""
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size > place:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
                file.seek(place)
                return file.read(_LARGEST)
    return b""
