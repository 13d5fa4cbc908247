"""Prints untrusted text. Names, messages and logs come from tasks, agents and services.

Every command prints with ``say``, so that no command has to decide which text is trusted.
"""

from __future__ import annotations

import typer

from seatrial.domain.terminal_text import harmless


def say(text: object = "", *, nl: bool = True, err: bool = False, bold: bool = False) -> None:
    """Prints one text. Control characters are printed as numbers, so that they do not control the terminal.

    ``bold`` has an effect on a terminal only."""
    shown = harmless(str(text))
    typer.echo(typer.style(shown, bold=True) if bold else shown, nl=nl, err=err)
