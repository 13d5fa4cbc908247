"""Makes a result fit for the store: without secrets, without values that a store cannot hold, and not too large.

The executor passes every result through here. Test names, messages and tracebacks come from sandboxes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from seatrial.domain.result import Result
from seatrial.engine.trials.redaction import REDACTED, SHORTEST_SECRET

_LONGEST_TEXT = 20_000
_LARGEST = 4 << 20
"""Characters of a whole result as JSON. Thousands of tests fit in."""
_ESSENTIAL = ("outcome", "rewards", "cause", "marks", "usage", "seconds", "timings")


def recordable(result: Result, secrets: Iterable[str]) -> Result:
    """Returns the same result, or the nearest one that can be stored."""
    known = sorted((secret for secret in secrets if len(secret) >= SHORTEST_SECRET), key=len, reverse=True)
    try:
        text = result.model_dump_json()
        clean = _redacted(text, known)
        if len(clean) <= _LARGEST and "\\u0000" not in clean:
            return result if clean == text else Result.model_validate_json(clean)
    except (ValueError, TypeError, RecursionError):
        pass  # such as lone surrogates, or a secret that is a number
    return _mended(result, known)


def essential(result: Result, message: str) -> Result:
    """Only outcome and usage, for a store that refused the whole result."""
    values = {name: getattr(result, name) for name in _ESSENTIAL}
    return _mended(Result(**values, message=message[:500]), ())


def _redacted(text: str, secrets: Iterable[str]) -> str:
    """Removes secrets, because an agent may print its key."""
    for secret in secrets:
        for spelling in {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            text = text.replace(spelling, REDACTED.decode())
    return text


def _mended(result: Result, secrets: Sequence[str]) -> Result:
    mended = Result.model_validate(_plain(result.model_dump(), secrets))
    if len(mended.model_dump_json()) <= _LARGEST:
        return mended
    note = f"{mended.message} (Its tests and its traceback were too large to be recorded.)".strip()
    failure = mended.failure.model_copy(update={"traceback": ""}) if mended.failure else None
    return mended.model_copy(update={"tests": (), "failure": failure, "message": note})


def _plain(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, StrEnum):
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED.decode())
        return value[:_LONGEST_TEXT].encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_plain(key, secrets): _plain(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, secrets) for inner in value]
    return value
