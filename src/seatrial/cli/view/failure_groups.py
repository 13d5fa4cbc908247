"""Groups of failed trials as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.domain.reports.failures import FailureGroup, Failures

_MOST_TRIALS = 12
_WIDTH = 76


def failure_lines(found: Failures) -> Iterator[str]:
    if not found.groups:
        yield "No trial failed or ended in an error."
        return
    yield f"{found.failed} failed, {found.errors} ended in errors; {len(found.groups)} group(s), the largest first"
    for group in found.groups:
        yield ""
        yield from _group(group)
    if found.not_shown:
        yield f"and {found.not_shown} more trial(s) in smaller groups"


def _group(group: FailureGroup) -> Iterator[str]:
    tasks = f"{group.tasks} task" + ("s" if group.tasks != 1 else "")
    yield f"{group.count:>5} x  {group.title}  ({tasks})"
    if group.line and group.line != group.title:
        yield f"         {group.line[:_WIDTH]}"
    if len(group.configurations) > 1:
        yield "         " + ", ".join(f"{label} {count}" for label, count in group.configurations.items())
    if group.commands:
        yield f"         last command  {' '.join(group.commands[0].split())[: _WIDTH - 14]}"
    ids = " ".join(map(str, group.trials[:_MOST_TRIALS]))
    more = f" and {group.count - _MOST_TRIALS} more (--json)" if group.count > _MOST_TRIALS else ""
    yield f"         trials  {ids}{more}"
    yield f"         example  seatrial trial show {group.example.trial}  ({group.example.task})"
