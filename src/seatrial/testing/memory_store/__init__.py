"""The store in memory: the ports' behaviour in its plainest form, for tests of everything above the store.

Passes the same contract suite as the SQL store. It never waits, so nothing can come between the steps of a method.
"""

from __future__ import annotations

from seatrial.testing.memory_store.store import MemoryStore

__all__ = ["MemoryStore"]
