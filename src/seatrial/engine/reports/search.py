"""Searches the stored texts of a job's trials: messages, tests, the agent's steps and the verifier's output.

Bounded: one call reads a limited number of trials and bytes, and says how far it looked. The next call goes on from
there. Files come from sandboxes and are untrusted; a file that is too large is searched in its first megabytes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from enum import StrEnum
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import StoredFile
from seatrial.domain.task import TaskRef
from seatrial.domain.terminal_text import readable
from seatrial.domain.trial import Outcome, Trial
from seatrial.engine.reports.atif import items, results, text_of
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.errors import NotFound
from seatrial.ports.store import TrialFilter, TrialRow, TrialStore

MOST_TRIALS = 500
"""Of one call."""
MOST_BYTES = 48 << 20
MOST_OF_A_FILE = 4 << 20
MOST_HITS = 200
_HITS_OF_A_TRIAL = 5
_AROUND = 80
_TRAJECTORY = "agent/trajectory.json"
_VERIFIER = "verifier/"


class Place(StrEnum):
    """Where a text was found."""

    MESSAGE = "message"
    TEST = "test"
    STEP = "step"
    FILE = "file"


class Hit(Frozen):
    """One place of a trial that contains the text."""

    trial_id: int
    task: TaskRef
    agent: str
    model: str | None
    outcome: Outcome | None
    place: Place
    name: str = ""
    """The test or the file."""
    number: int | None = None
    """The step, or the line of the file."""
    before: str
    match: str
    after: str


class Found(Frozen):
    """What one call found, and how far it looked."""

    hits: tuple[Hit, ...]
    trials: int
    """Trials that were searched, those without the text included."""
    bytes: int
    """Of files that were read."""
    cut: int
    """Files of which only the first megabytes were searched."""
    next: int | None
    """Search on after this trial; ``None`` if all were searched."""


class _Search:
    """One call. Counts what it reads."""

    def __init__(self, files: TryFiles, wanted: str) -> None:
        self._files = files
        self._wanted = re.compile(re.escape(wanted), re.IGNORECASE)
        self.hits: list[Hit] = []
        self.trials = 0
        self.bytes = 0
        self.cut = 0

    @property
    def is_full(self) -> bool:
        return self.trials >= MOST_TRIALS or self.bytes >= MOST_BYTES or len(self.hits) >= MOST_HITS

    async def look(self, row: TrialRow) -> None:
        self.trials += 1
        found = list(_in_result(row, self._wanted))
        if row.result is not None and len(found) < _HITS_OF_A_TRIAL:
            found += await self._in_files(row.trial)
        self.hits += found[:_HITS_OF_A_TRIAL]

    async def _in_files(self, trial: Trial) -> list[Hit]:
        try:
            kept = await self._files.kept(trial.id)
        except NotFound:
            return []
        found: list[Hit] = []
        for file in sorted(kept.files, key=lambda each: each.path):
            if len(found) >= _HITS_OF_A_TRIAL:
                break
            if file.path.endswith(_TRAJECTORY):
                found += await self._in_file(trial, kept, file, _in_trajectory)
            elif _is_verifier_output(file.path):
                found += await self._in_file(trial, kept, file, _in_lines)
        return found

    async def _in_file(self, trial: Trial, kept: KeptFiles, file: StoredFile, look: Any) -> list[Hit]:
        try:
            content = b"".join([piece async for piece in self._files.stream(kept, file, 0, MOST_OF_A_FILE)])
        except NotFound:
            return []  # removed, while the result was kept
        self.bytes += len(content)
        self.cut += file.size > MOST_OF_A_FILE
        whole = file.size <= MOST_OF_A_FILE
        return await asyncio.to_thread(lambda: list(look(trial, file.path, content, whole, self._wanted)))


async def search_job(trials: TrialStore, files: TryFiles, job_id: int, wanted: str, after: int = 0) -> Found:
    """Upper and lower case are the same. In planned order."""
    search = _Search(files, wanted)
    last = None
    async with aclosing(trials.each(TrialFilter(job_id=job_id, after=after))) as rows:
        async for row in rows:
            if search.is_full:
                return _found(search, last)
            await search.look(row)
            last = row.trial.id
    return _found(search, None)


def _found(search: _Search, next_after: int | None) -> Found:
    return Found(hits=tuple(search.hits), trials=search.trials, bytes=search.bytes, cut=search.cut, next=next_after)


def _in_result(row: TrialRow, wanted: re.Pattern[str]) -> Iterator[Hit]:
    result = row.result
    if result is None:
        return
    yield from _hits(row.trial, Place.MESSAGE, "", None, result.message, wanted)
    for test in result.tests:
        yield from _hits(row.trial, Place.TEST, test.name, None, f"{test.name}\n{test.message}", wanted)


def _in_trajectory(trial: Trial, path: str, content: bytes, whole: bool, wanted: re.Pattern[str]) -> Iterator[Hit]:
    try:
        trajectory = json.loads(content) if whole else None
    except (ValueError, RecursionError):
        trajectory = None
    if not isinstance(trajectory, Mapping):
        yield from _in_lines(trial, path, content, whole, wanted)
        return
    for index, step in enumerate(items(trajectory.get("steps"))):
        if isinstance(step, Mapping):
            told = step.get("step_id")
            number = told if isinstance(told, int) and 0 < told < 2**31 else index + 1
            yield from _hits(trial, Place.STEP, "", number, step_text(step), wanted)


def step_text(step: Mapping[str, Any]) -> str:
    """Everything that a step says: the thought, the message, the calls and their results."""
    calls = [call.get("arguments") for call in items(step.get("tool_calls")) if isinstance(call, Mapping)]
    said = [text_of(step.get("reasoning_content")), text_of(step.get("message")), *map(_arguments, calls)]
    seen = [text_of(result.get("content")) for result in results(step) if isinstance(result, Mapping)]
    return "\n".join(part for part in (*said, *seen) if part)


def _arguments(given: Any) -> str:
    if isinstance(given, Mapping):
        for name in ("keystrokes", "command"):
            if isinstance(given.get(name), str):
                return str(given[name])
    return json.dumps(given, ensure_ascii=False, default=str) if given else ""


def _in_lines(trial: Trial, path: str, content: bytes, whole: bool, wanted: re.Pattern[str]) -> Iterator[Hit]:
    for number, line in enumerate(readable(content.decode("utf-8", "replace")).split("\n"), start=1):
        yield from _hits(trial, Place.FILE, path, number, line, wanted)


def _hits(
    trial: Trial, place: Place, name: str, number: int | None, text: str, wanted: re.Pattern[str]
) -> Iterator[Hit]:
    """At most one: the first place of this text."""
    found = wanted.search(text)
    if found is None:
        return
    at, end = found.span()
    yield Hit(
        trial_id=trial.id,
        task=trial.task,
        agent=trial.agent,
        model=trial.model,
        outcome=trial.outcome,
        place=place,
        name=name[:400],
        number=number,
        before=_short(text[max(0, at - _AROUND) : at]),
        match=_short(found[0]),
        after=_short(text[end : end + _AROUND]),
    )


def _short(text: str) -> str:
    """On one line, and storable in every answer: without lone surrogates."""
    return text.replace("\n", " ").encode("utf-8", "replace").decode()


def _is_verifier_output(path: str) -> bool:
    inside = path.startswith(_VERIFIER) or f"/{_VERIFIER}" in path
    return inside and path.endswith((".txt", ".log", ".out", ".err"))
