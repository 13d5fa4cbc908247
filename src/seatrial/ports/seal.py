"""Seals secrets at rest. What is sealed can be opened by this installation alone."""

from __future__ import annotations

from typing import Protocol

SEPARATOR = ":"
"""Stands between the fingerprint and what is sealed. Older versions sealed without a fingerprint."""


class Seal(Protocol):
    def fingerprint(self) -> str:
        """Tells secret keys apart, and nothing about them. What ``close`` returns begins with it."""
        ...

    def close(self, text: str) -> str: ...

    def open(self, sealed: str) -> str:
        """Raises ``SetupProblem`` for what another secret key sealed."""
        ...
