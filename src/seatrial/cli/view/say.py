"""Prints untrusted text. Names, messages and logs come from tasks, agents and services.

Every command prints with ``say``, so that no command has to decide which text is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from seatrial.domain.terminal_text import harmless

if TYPE_CHECKING:
    from seatrial.domain.task import Task

_MOST_WARNINGS = 5


def say(text: object = "", *, nl: bool = True, err: bool = False, bold: bool = False) -> None:
    """Prints one text. Control characters are printed as numbers, so that they do not control the terminal.

    ``bold`` has an effect on a terminal only."""
    shown = harmless(str(text))
    typer.echo(typer.style(shown, bold=True) if bold else shown, nl=nl, err=err)


def say_notices(sentences: Iterable[str]) -> None:
    """What is odd about a request, though it can run. On standard error."""
    for sentence in sentences:
        say(f"Note: {sentence}", err=True)


def say_warnings(tasks: Sequence[Task]) -> None:
    """Warnings about the files of tasks, such as an unknown key in task.toml."""
    found = [f"{task.name}/{warning}" for task in tasks for warning in task.warnings]
    say_notices(found[:_MOST_WARNINGS])
    if (more := len(found) - _MOST_WARNINGS) > 0:
        say(f"Note: {more} more warnings; `seatrial task add --check PATH…` lists them all.", err=True)
