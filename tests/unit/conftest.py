"""Property-based tests draw the same examples on every machine, and may take their time on a busy one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
