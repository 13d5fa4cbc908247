"""Numbers as people read them: with their unit and, if known, their uncertainty. One rule for terminal, Markdown, HTML
and pictures."""

from __future__ import annotations

NOTHING = "–"


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f} %"


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """``62.4 % ± 4.1``, or ``96.0 % (85.2 to 99.1)`` if the interval is asymmetric."""
    if value is None or low is None or high is None:
        return percent(value)
    if abs((value - low) - (high - value)) < 0.0005:
        return f"{percent(value)} ± {100 * (high - low) / 2:.1f}"
    return f"{percent(value)} ({100 * low:.1f} to {100 * high:.1f})"


def span(low: float, high: float) -> str:
    """``25.0 to 100.0 %``."""
    return f"{100 * low:.1f} to {percent(high)}"


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


def duration(seconds: float) -> str:
    """``850 ms``, ``4.2 s``, ``1 m 12 s``, ``2 h 05 m``."""
    if round(seconds * 1000) < 1000:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
