"""Formats numbers and untrusted text for a terminal. Used by the other view modules.

Numbers carry their unit and, if known, their uncertainty. Text from tasks and agents is never interpreted as markup.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from seatrial.domain.statistics import Interval

NOTHING = "–"
_FILE_WIDTH = 4000


def open_console() -> Console:
    """Standard output. In a file or a pipe nothing wraps and nothing is shortened."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_FILE_WIDTH)


def plain(text: str, style: str = "") -> Text:
    """Untrusted text for the terminal: without markup and without control characters."""
    return Text("".join(letter if letter.isprintable() else "�" for letter in text), style=style)


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f} %"


def signed_points(share: float) -> str:
    value = round(100 * share, 1)
    return f"{value:+.1f}".replace("-", "−") if value else "0.0"


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """``62.4 % ± 4.1``, or ``96.0 % (85.2 to 99.1)`` if the interval is asymmetric."""
    if value is None or low is None or high is None:
        return percent(value)
    if abs((value - low) - (high - value)) < 0.0005:
        return f"{percent(value)} ± {100 * (high - low) / 2:.1f}"
    return f"{percent(value)} ({100 * low:.1f} to {100 * high:.1f})"


def span(interval: Interval | None) -> str:
    """``23 – 88 %``, for a single task: a few trials do not justify tenths."""
    return NOTHING if interval is None else f"{100 * interval.low:.0f} – {100 * interval.high:.0f} %"


def dollars(amount: float | None) -> str:
    if amount is None:
        return NOTHING
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.1 else f"${amount:.4f}"


def tokens(number: int | None) -> str:
    """``812``, ``48.2 k``, ``3.1 M``."""
    if number is None:
        return NOTHING
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f} k" if number < 999_950 else f"{number / 1e6:.1f} M"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def listing(names: tuple[str, ...], most: int = 12) -> str:
    """Names on one line. A long list is cut and says by how much."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(times: dict[str, int]) -> str:
    """``3 llm, 1 sandbox``."""
    return ", ".join(f"{number} {name}" for name, number in times.items()) or NOTHING
