"""The store in memory: the simplest implementation of the ports, for tests.

Passes the same contract suite as the SQL store. It never awaits, so every method is atomic.
"""

from __future__ import annotations

from seatrial.testing.memory_store.store import MemoryStore

__all__ = ["MemoryStore"]
