"""Foreign text on a person's terminal: names, messages and logs come from tasks, agents and services.

Every command prints through ``say``, so that nobody has to remember which text is whose.
"""

from __future__ import annotations

import typer

from seatrial.domain.terminal_text import harmless


def say(text: object = "", *, nl: bool = True, err: bool = False) -> None:
    """Prints one text. What could steer the terminal is shown as its number and not obeyed."""
    typer.echo(harmless(str(text)), nl=nl, err=err)
