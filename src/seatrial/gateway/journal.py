"""The files in which a trial's calls are counted: ``calls.jsonl``, one line for each call.

A line is written in one piece when its call has ended, so a killed worker loses none of them. A call that was going on
is known from ``calls-begun.jsonl``, which holds a line for each request to a provider, written before it is sent, and
one with the usage that the provider reported, written before the agent sees the end of the answer. The file is removed
at the end of the trial, when every call has ended. A torn last line is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from seatrial.domain.model_calls.model_call import CALLS_FILE, CallUsage, ModelCall
from seatrial.domain.model_calls.prices import CallCost

BEGUN = "calls-begun.jsonl"
_LONGEST_LINE = 64 * 1024
_MOST_BYTES = 64 * 1024 * 1024
"""Beyond this size, calls are still counted, but no more lines are written."""
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Journal:
    """Of one trial. Writes are short and go to the page cache, so they run in the event loop."""

    def __init__(self, folder: Path) -> None:
        self._calls = _Lines(folder / CALLS_FILE)
        self._begun = _Lines(folder / BEGUN)
        self._written = 0
        self._going_on: set[int] = set()
        self._number = 0

    def next_number(self) -> int:
        """The number of a new call, from 1."""
        self._number += 1
        return self._number

    def asks(self, number: int, model: str, at: str) -> None:
        """A request of this call is about to be sent. A call may take several."""
        self._going_on.add(number)
        self._begun.write({"call": number, "model": model[:200], "at": at})

    def hears(self, number: int, usage: CallUsage, cost: CallCost) -> None:
        """The provider has told what this call used so far. A later line of the same call replaces it."""
        told = {"usage": _dumped(usage), "cost_usd": cost.dollars, "cost_by": cost.by}
        self._begun.write({"call": number, **{name: value for name, value in told.items() if value is not None}})

    def end(self, number: int | None, call: ModelCall) -> None:
        """A call has ended; ``None`` if it was never sent."""
        line = call.model_dump(mode="json", exclude_none=True)
        if self._written < _MOST_BYTES:
            self._written += self._calls.write(line if number is None else {"call": number, **line})
        if number is not None:
            self._going_on.discard(number)

    def close(self) -> None:
        self._calls.close()
        self._begun.close()
        if not self._going_on:
            self._begun.path.unlink(missing_ok=True)


def read_calls(folder: Path) -> list[ModelCall]:
    """The calls of a trial, including those that a killed worker left open: they were sent, and their cost is
    unknown."""
    ended, calls = set[str](), list[ModelCall]()
    for line in _lines(folder / CALLS_FILE):
        ended.add(str(line.pop("call", None)))
        calls += _call(line)
    return calls + _lost_calls(folder, ended)


def _lost_calls(folder: Path, ended: Collection[str]) -> list[ModelCall]:
    """The calls that began and did not end, in order, with the usage that the provider had reported."""
    first, tries, told = dict[str, dict[str, object]](), Counter[str](), dict[str, dict[str, object]]()
    for line in _lines(folder / BEGUN):
        number = str(line.pop("call", None))
        if number in ended:
            continue
        if "usage" in line:
            told[number] = line
        else:
            first.setdefault(number, line)
            tries[number] += 1
    calls = list[ModelCall]()
    for number, line in first.items():
        lost = {"at": line.get("at"), "model": line.get("model"), "tries": tries[number], "format": ""}
        lost["error"] = "its worker was lost"
        calls += _call({**told.get(number, {}), **lost}) or _call(lost)
    return calls


def _dumped(usage: CallUsage) -> dict[str, int]:
    return {name: value for name, value in usage.__dict__.items() if value is not None}


def _call(line: dict[str, object]) -> list[ModelCall]:
    try:
        return [ModelCall.model_validate(line)]
    except ValueError:
        return []


class _Lines:
    """A file of lines, made with its first one. A full disk must not end a call: the sums are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def write(self, line: object) -> int:
        text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            if self._file is None:
                self._file = os.open(self.path, _APPEND, 0o644)
            return os.write(self._file, text)
        except OSError:
            return 0

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _lines(path: Path) -> Iterator[dict[str, object]]:
    try:
        with path.open("rb") as file:
            for text in file:
                with contextlib.suppress(ValueError, RecursionError):
                    line = json.loads(text) if text.endswith(b"\n") and len(text) <= _LONGEST_LINE else None
                    if isinstance(line, dict):
                        yield line
    except OSError:
        return
