"""The ``test.sh`` of a mapped Terminal-Bench 1 task; ``grade.sh`` is its body and says what it does."""

from __future__ import annotations

import shlex
from pathlib import Path

from seatrial.adapters.terminalbench1.config import ParserName


def grading_script(parser: ParserName, limit_sec: float, logs: str = "/logs/verifier") -> str:
    """A bash script that runs ``run-tests.sh`` beside it and writes reward and per-test results below ``logs``."""
    body = (Path(__file__).parent / "grade.sh").read_text()
    return f"#!/bin/bash\nparser={parser}\nlimit={limit_sec:g}\nlogs={shlex.quote(logs)}\n{body}"
