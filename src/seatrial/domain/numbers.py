"""Bounds of every number that a caller sends and that reaches a store. Databases count no further than this."""

from __future__ import annotations

LARGEST_ID = 2**63 - 1
"""Ids of jobs, trials, events and tokens: 64 bits."""
LARGEST_COUNT = 2**31 - 1
"""How many rows to leave out or to take, and numbers of tries: 32 bits."""
