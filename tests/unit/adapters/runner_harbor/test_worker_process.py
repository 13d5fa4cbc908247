"""The process of a worker: the garbage collector looks less often, and still collects."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from seatrial.adapters.runner_harbor.process import collect_less_often

class Knot:
    def __init__(self):
        self.self = self

usual = gc.get_threshold()[0]
collect_less_often()
assert gc.isenabled() and gc.get_threshold()[0] > 10 * usual
knot = weakref.ref(Knot())
few = [[] for _ in range(10 * usual)]
assert knot() is not None, "looked at before it was worth it"
many = [[] for _ in range(10 * gc.get_threshold()[0])]
assert knot() is None, "never collected"
"""


def test_garbage_is_collected_though_less_often() -> None:
    """In a process of its own: the collector belongs to the whole process."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
