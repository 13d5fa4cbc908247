"""What is kept of a trial's model calls, and what a replay does without it. Without other imports: the command line
shows both in its help."""

from __future__ import annotations

from enum import StrEnum


class Record(StrEnum):
    CALLS = "calls"
    """A line for each call, without what was said."""
    FULL = "full"
    """The bodies of requests and answers as well, without known secrets."""


class ReplayMiss(StrEnum):
    """What a request gets that is not in the record of the replayed trial."""

    ERROR = "error"
    """An error with the first difference. The trial ends."""
    LIVE = "live"
    """The answer of the real provider, which costs what it costs."""
