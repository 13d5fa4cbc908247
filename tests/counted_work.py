"""Counts how much Python does, instead of how long it takes: a busy or slow machine gives the same number."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

_TOOL = sys.monitoring.PROFILER_ID


@dataclass
class Work:
    steps: int = 0
    """Lines and rounds of loops, each time that they were executed, in all threads and libraries of this process."""


@contextmanager
def counted_work() -> Iterator[Work]:
    work, monitoring = Work(), sys.monitoring

    def note(code: CodeType, *place: int) -> None:
        work.steps += 1

    kinds = (monitoring.events.LINE, monitoring.events.JUMP)
    monitoring.use_tool_id(_TOOL, "counted work")
    for kind in kinds:
        monitoring.register_callback(_TOOL, kind, note)
    monitoring.set_events(_TOOL, kinds[0] | kinds[1])
    try:
        yield work
    finally:
        monitoring.set_events(_TOOL, 0)
        for kind in kinds:
            monitoring.register_callback(_TOOL, kind, None)
        monitoring.free_tool_id(_TOOL)
