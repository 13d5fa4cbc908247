"""Formats numbers and untrusted text for a terminal. Used by the other view modules.

Numbers carry their unit and, if known, their uncertainty. Text from tasks and agents is never interpreted as markup.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from seatrial.domain.reports.figures import NOTHING, dollars, estimate, percent, plural, tokens
from seatrial.domain.statistics.estimates import Interval

__all__ = [
    "NOTHING",
    "counted",
    "dollars",
    "estimate",
    "listing",
    "open_console",
    "percent",
    "plain",
    "plural",
    "signed_points",
    "span",
    "tokens",
]

_FILE_WIDTH = 4000


def open_console() -> Console:
    """Standard output. In a file or a pipe nothing wraps and nothing is shortened."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_FILE_WIDTH)


def plain(text: str, style: str = "") -> Text:
    """Untrusted text for the terminal: without markup and without control characters."""
    return Text("".join(letter if letter.isprintable() else "�" for letter in text), style=style)


def signed_points(share: float) -> str:
    value = round(100 * share, 1)
    return f"{value:+.1f}".replace("-", "−") if value else "0.0"


def span(interval: Interval | None) -> str:
    """``23 – 88 %``, for a single task: a few trials do not justify tenths."""
    return NOTHING if interval is None else f"{100 * interval.low:.0f} – {100 * interval.high:.0f} %"


def listing(names: tuple[str, ...], most: int = 12) -> str:
    """Names on one line. A long list is cut and says by how much."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(times: dict[str, int]) -> str:
    """``3 llm, 1 sandbox``."""
    return ", ".join(f"{number} {name}" for name, number in times.items()) or NOTHING
