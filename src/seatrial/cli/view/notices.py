"""Notices of ``seatrial run`` on standard error: what is odd about a request, though it can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.cli.view.say import say
from seatrial.domain.task import Task

_MOST = 5


def say_notices(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"Note: {sentence}", err=True)


def say_warnings(tasks: Sequence[Task]) -> None:
    """Warnings about the files of tasks, such as an unknown key in task.toml."""
    found = [f"{task.name}/{warning}" for task in tasks for warning in task.warnings]
    say_notices(found[:_MOST])
    if len(found) > _MOST:
        say(f"Note: {len(found) - _MOST} more warnings; `seatrial task add --check PATH…` lists them all.", err=True)
