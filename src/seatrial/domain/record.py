"""What is kept of a trial's model calls. Without other imports: the command line shows it in its help."""

from __future__ import annotations

from enum import StrEnum


class Record(StrEnum):
    CALLS = "calls"
    """A line for each call, without what was said."""
    FULL = "full"
    """The bodies of requests and answers as well, without known secrets."""
