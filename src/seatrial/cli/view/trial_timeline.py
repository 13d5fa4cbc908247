"""What happened in a trial, in the order in which it happened: phases, steps of the agent, how the verifier ended.

``seatrial trial logs`` prints it from the trial's events; with ``--follow``, as they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from seatrial.cli.view.columns import shorten
from seatrial.cli.view.progress import duration
from seatrial.domain.event import Event, EventKind
from seatrial.domain.result import Result, StoredFile, TestStatus
from seatrial.domain.terminal_text import readable
from seatrial.domain.trial import Cause, Outcome

_INDENT = " " * 20
_LAST_LINES = 20
_BLAMED = {
    Cause.IMAGE: ("build.log", "exception.txt", "trial.log"),
    Cause.SANDBOX: ("exception.txt", "trial.log"),
    Cause.WORKER_LOST: ("trial.log",),
    Cause.LLM: ("exception.txt", "agent/", "trial.log"),
    Cause.AGENT: ("exception.txt", "agent/", "trial.log"),
    Cause.REPLAY: ("exception.txt", "agent/", "trial.log"),
}
"""Where to look for the reason of an error. Everything else is in the verifier's output."""
_OUTPUT = ("verifier/test-stdout.txt", "verifier/")


class TryTimeline:
    """Turns events of one try into lines. ``width`` is that of the terminal; ``None`` shortens nothing."""

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._began: datetime | None = None
        self._phases: set[str] = set()

    def lines(self, event: Event) -> Iterator[str]:
        data = event.data
        if event.kind is EventKind.TRIAL_CLAIMED:
            return
        self._began = self._began or event.at  # a worker that has just begun needs seconds to load
        if event.kind is EventKind.TRIAL_PHASE:
            step = f" of step {data['step']}" if data.get("step") else ""
            phase = str(data.get("phase")).replace("_", " ") + step
            if phase not in self._phases:  # Harbor goes from start to build and back
                self._phases.add(phase)
                yield self._at(event, phase)
        elif event.kind is EventKind.TRIAL_STEP:
            yield from self._step(event)
        elif event.kind is EventKind.TRIAL_RETRY:
            yield self._at(event, f"another try follows: {data.get('cause') or 'error'}")
        elif event.kind is EventKind.TRIAL_ENDED:
            yield self._at(event, str(data.get("outcome")))
            yield from (f"{_INDENT}{line}" for line in _took(data))

    def _step(self, event: Event) -> Iterator[str]:
        data = event.data
        if data.get("source") != "agent":
            yield self._at(event, f"  {data.get('step')}  ({data.get('source')})")
            return
        said = " ".join(readable(str(data.get("message") or "")).split())
        yield self._at(event, f"  {data.get('step')}  {said}")
        for tool in data.get("tools") or ():
            if isinstance(tool, Mapping):
                called = f"{tool.get('name', '')} {readable(str(tool.get('input') or ''))}"
                yield self._fitting(f"{_INDENT}    > {' '.join(called.split())}")

    def _at(self, event: Event, text: str) -> str:
        elapsed = duration((event.at - (self._began or event.at)).total_seconds())
        return self._fitting(f"{event.at.astimezone():%H:%M:%S}  {elapsed:>8}  {text}")

    def _fitting(self, line: str) -> str:
        return line if self._width is None else shorten(line, self._width, prose=True)


def _took(data: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(data.get("cause"), str):
        yield f"cause: {data['cause']}"
    phases = data.get("phases")
    if isinstance(phases, Mapping) and phases:
        yield ", ".join(f"{name.replace('_', ' ')} {duration(float(took))}" for name, took in phases.items())


def failed_tests(result: Result) -> Iterator[str]:
    """Each test that did not pass, with its whole message."""
    for test in result.tests:
        if test.status not in (TestStatus.PASSED, TestStatus.SKIPPED):
            yield f"{test.status} {test.name}"
            yield from (f"  | {line}" for line in readable(test.message).splitlines())


def explaining_log(logs: Sequence[StoredFile], result: Result) -> StoredFile | None:
    """The log that says why the trial ended as it did."""
    places = _BLAMED.get(result.cause, _OUTPUT) if result.outcome is Outcome.ERROR and result.cause else _OUTPUT
    for place in (*places, *_OUTPUT):
        for file in logs:
            if file.path.startswith(place) and file.size and not file.path.endswith((".json", "reward.txt")):
                return file
    return None


def last_lines(text: str, path: str, most: int = _LAST_LINES) -> Iterator[str]:
    lines = [line.rstrip() for line in readable(text).rstrip().splitlines()]
    yield f"{path}, its last {most} of {len(lines)} lines:" if len(lines) > most else f"{path}:"
    yield from (f"  | {line}" for line in lines[-most:])
