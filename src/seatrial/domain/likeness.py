"""Suggests the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean 'oracle'?``, or nothing if no known name resembles this one."""
    by_small = {each.lower(): each for each in known}
    close = get_close_matches(name.lower()[:200], by_small, n=1, cutoff=0.7)
    return f"Did you mean {by_small[close[0]]!r}?" if close else ""
