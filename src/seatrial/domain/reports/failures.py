"""Groups failed trials by what decided them, without a model. Used by the API, the page and ``seatrial job failures``.

Two trials are in one group if they have the same cause or limit, the same failed tests, and the same first error line
after numbers, paths, addresses and times are taken out of it. Trials without any of that are grouped by the last
command of the agent. Pure, and in linear time: a job may have 100,000 trials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import Cause, Mark, Outcome

MOST_GROUPS = 200
_MOST_TESTS = 50
_MOST_COMMANDS = 3
_LONGEST_LINE = 300
_DECIDING = (Mark.AGENT_TIMEOUT, Mark.AGENT_ERROR, Mark.OVER_BUDGET, Mark.MEMORY_KILL)
_LIMITS = {
    Mark.AGENT_TIMEOUT: "the agent ran out of time",
    Mark.AGENT_ERROR: "the agent ended with an error",
    Mark.OVER_BUDGET: "the agent went over its budget",
    Mark.MEMORY_KILL: "a process was killed for lack of memory",
}

# Each in linear time for any line.
_CHANGING = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"), "<time>"),
    (re.compile(r"\b\d\d?:\d\d(?::\d\d(?:\.\d+)?)?\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "<hex>"),
    (re.compile(r"(?<![\w.])~?(?:/[\w.@%+-]+)+/?"), "<path>"),
    (re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_TELLING = re.compile(r"\b\w*(?:Error|Exception|Failure|assert)\w*\b", re.IGNORECASE)


class FailedTest(NamedTuple):
    name: str
    message: str = ""


class FailedTrial(NamedTuple):
    """What is known of a trial that failed or ended in an error. A plain tuple, because there may be very many."""

    trial_id: int
    task: str
    configuration: str
    attempt: int
    outcome: Outcome
    cause: Cause | None = None
    marks: tuple[Mark, ...] = ()
    message: str = ""
    tests: tuple[FailedTest, ...] = ()
    """The tests that did not pass."""
    last_command: str = ""


class FailureExample(Frozen):
    trial: int
    task: str
    configuration: str
    attempt: int
    message: str
    """The error as it was, of the first failed test or of the trial."""
    last_command: str


class FailureGroup(Frozen):
    """Trials that the same thing decided."""

    title: str
    outcome: Outcome
    cause: Cause | None = None
    marks: tuple[Mark, ...] = ()
    tests: tuple[str, ...] = ()
    """Names of the failed tests, at most 50."""
    line: str = ""
    """The error line, with numbers, paths, addresses and times taken out."""
    commands: tuple[str, ...] = ()
    """The most frequent last commands of the agents."""
    count: int
    tasks: int
    configurations: dict[str, int]
    """Trials of each configuration."""
    example: FailureExample
    trials: tuple[int, ...]
    """All of them, oldest first."""


class Failures(Frozen):
    groups: tuple[FailureGroup, ...] = ()
    """The largest first."""
    failed: int = 0
    errors: int = 0
    not_shown: int = 0
    """Trials in groups beyond the first 200."""


def group_failures(trials: Iterable[FailedTrial]) -> Failures:
    groups: dict[tuple[object, ...], list[FailedTrial]] = {}
    outcomes: Counter[Outcome] = Counter()
    for trial in trials:
        outcomes[trial.outcome] += 1
        groups.setdefault(_key(trial), []).append(trial)
    largest = sorted(groups.values(), key=lambda members: (-len(members), members[0].trial_id))
    return Failures(
        groups=tuple(_group(members) for members in largest[:MOST_GROUPS]),
        failed=outcomes[Outcome.FAILED],
        errors=outcomes[Outcome.ERROR],
        not_shown=sum(map(len, largest[MOST_GROUPS:])),
    )


def normalised(line: str) -> str:
    """A line without what changes from run to run."""
    line = line[:_LONGEST_LINE]
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return line.strip()


def _key(trial: FailedTrial) -> tuple[object, ...]:
    names, line = tuple(sorted({test.name for test in trial.tests})), normalised(_error_line(trial))
    marks = _deciding(trial)
    fallback = "" if names or line or marks or trial.cause else normalised(trial.last_command)
    return trial.outcome, trial.cause, marks, names, line, fallback


def _deciding(trial: FailedTrial) -> tuple[Mark, ...]:
    return tuple(mark for mark in _DECIDING if mark in trial.marks)


def _error_line(trial: FailedTrial) -> str:
    """The first line that names an error, else the first one that says anything."""
    text = next((test.message for test in trial.tests if test.message.strip()), trial.message)
    lines = [line.strip() for line in text[:4000].splitlines() if line.strip()]
    return next((line for line in lines if _TELLING.search(line)), lines[0] if lines else "")


def _group(members: Sequence[FailedTrial]) -> FailureGroup:
    first = min(members, key=lambda trial: trial.trial_id)
    names = tuple(sorted({test.name for test in first.tests}))
    line = normalised(_error_line(first))
    commands = Counter(trial.last_command for trial in members if trial.last_command)
    return FailureGroup(
        title=_title(first, names, line),
        outcome=first.outcome,
        cause=first.cause,
        marks=_deciding(first),
        tests=names[:_MOST_TESTS],
        line=line,
        commands=tuple(command for command, _ in commands.most_common(_MOST_COMMANDS)),
        count=len(members),
        tasks=len({trial.task for trial in members}),
        configurations=dict(Counter(trial.configuration for trial in members).most_common()),
        example=FailureExample(
            trial=first.trial_id,
            task=first.task,
            configuration=first.configuration,
            attempt=first.attempt,
            message=next((test.message for test in first.tests if test.message.strip()), first.message),
            last_command=first.last_command,
        ),
        trials=tuple(sorted(trial.trial_id for trial in members)),
    )


def _title(trial: FailedTrial, names: Sequence[str], line: str) -> str:
    marks = [_LIMITS[mark] for mark in _deciding(trial)]
    if trial.outcome is Outcome.ERROR:
        return "; ".join([f"error: {trial.cause or 'unknown cause'}", *marks])
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return "; ".join([f"{names[0].rpartition('::')[2]}{more} failed", *marks])
    return "; ".join(marks) or line or "the reward is below 1"
