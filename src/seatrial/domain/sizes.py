"""Sizes as compose files write them: ``512m``, ``2g``, ``1.5GB``. Sandboxes and the readers of tasks use this."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*([bkmgt]?)i?b?")
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_of(text: str) -> int | None:
    """``None`` for what is not a size."""
    match = _SIZE.fullmatch(text.strip().lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None
