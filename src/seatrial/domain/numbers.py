"""Upper bounds of numbers that callers send to a store; larger ones overflow in a database."""

from __future__ import annotations

LARGEST_ID = 2**63 - 1
"""Ids of jobs, trials, events and tokens: 64 bits."""
LARGEST_COUNT = 2**31 - 1
"""Numbers of rows to skip or return, and numbers of tries: 32 bits."""
