"""Forty trials ask for one image that nobody has built yet: how often is it built?

Counted from outside: the ``buildah`` on the worker's path is a script that notes each call and hands it on.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from pathlib import Path

from benchmarks.command import run_job
from benchmarks.place import Place, copy_task
from benchmarks.row import Row

_TRIALS = 40


async def measure(place: Place) -> list[Row]:
    return await asyncio.to_thread(_measure, place)


def _measure(place: Place) -> list[Row]:
    task = copy_task(place, "uncached")
    with (task / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write(f"RUN echo {uuid.uuid4().hex} > /never-built-before\n")
    tools = place.folder("tools")
    calls = _note_calls(tools)
    summary = run_job(place, task, _TRIALS, path=tools).summary
    builds = sum(" build " in line and "localhost/seatrial" in line for line in calls.read_text().splitlines())
    passed = summary["passed"] == _TRIALS
    return [
        Row(
            f"builds of one uncached image, {_TRIALS} trials at once",
            f"{builds} ({summary['passed']} passed)",
            "1",
            builds == 1 and passed,
        )
    ]


def _note_calls(folder: Path) -> Path:
    real = shutil.which("buildah")
    calls = folder / "calls"
    calls.touch()
    script = folder / "buildah"
    script.write_text(f'#!/bin/sh\necho " $* " >> {calls}\nexec {real} "$@"\n')
    script.chmod(0o755)
    return calls
