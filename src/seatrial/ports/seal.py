"""Encrypts secrets before they are stored. Only a process with the same secret key can open them."""

from __future__ import annotations

from typing import Protocol

SEPARATOR = ":"
"""Separates the fingerprint from the encrypted text. Older versions stored no fingerprint."""


class Seal(Protocol):
    def fingerprint(self) -> str:
        """Identifies the secret key without revealing it. The text that ``close`` returns begins with it."""

    def close(self, text: str) -> str: ...

    def open(self, sealed: str) -> str:
        """Raises ``SetupProblem`` if another secret key sealed the text."""
