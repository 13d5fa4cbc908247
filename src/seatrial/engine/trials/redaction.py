"""Removes known secrets from live output. ``redact_files`` does the same for saved files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.engine.trials.redact_files import REDACTED, SHORTEST_SECRET


class Redaction:
    """The secrets of one try."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode("utf-8", "surrogateescape") for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if known else None

    def clean(self, data: bytes) -> bytes:
        return self._pattern.sub(REDACTED, data) if self._pattern is not None else data

    def safe_end(self, data: bytes) -> int:
        """How much of ``data`` is safe to show. The rest may be the beginning of a secret."""
        if self._pattern is None:
            return len(data)
        end = len(data) - self._begun(data)
        for found in self._pattern.finditer(data):
            if found.start() < end < found.end():
                return found.start()
        return end

    def _begun(self, data: bytes) -> int:
        longest = min(len(self._secrets[0]) - 1, len(data))
        for length in range(longest, 0, -1):
            tail = data[-length:]
            if any(secret.startswith(tail) for secret in self._secrets):
                return length
        return 0
