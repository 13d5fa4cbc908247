"""Seals secrets at rest. What is sealed can be opened by this installation alone."""

from __future__ import annotations

from typing import Protocol


class Seal(Protocol):
    def close(self, text: str) -> str: ...

    def open(self, sealed: str) -> str:
        """Raises ``SetupProblem`` for what another secret key sealed."""
        ...
