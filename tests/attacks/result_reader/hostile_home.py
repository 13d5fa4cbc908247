"""An installation whose one trial is hostile in everything that it left, and whose other is not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result, TestResult, TestStatus
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.task_files import write_task

HOSTILE = {
    "a colour": "\x1b[31m",
    "a title": "\x1b]0;title\x07",
    "the clipboard": "\x1b]52;c;c3RvbGVu\x07",
    "a link": "\x1b]8;;http://evil.invalid/\x1b\\text\x1b]8;;\x1b\\",
    "one byte for two": "\x9b31m\x9d0;title\x9c",
    "a question to the terminal": "\x1b[6n\x1bP$qm\x1b\\",
    "the line again": "passed\rfailed",
    "a step back": "x\x08\x08\x7f",
    "another direction": "\u202eabc\u2066def\u2069",
    "nothing to see": "a\u200bb\u2060c\ufeff",
    "a bell": "\x07\x07",
}
ALL = " ".join(HOSTILE.values())
DEEP = b"[" * 100_000 + b"]" * 100_000
STEP = {"step_id": 1, "source": "user", "message": "Do it."}


def trajectory(text: str) -> bytes:
    answer = {"step_id": 2, "source": "agent", "message": text, "extra": float("nan")}
    return json.dumps({"schema_version": "ATIF-v1.2", "steps": [STEP, answer]}).encode()


RECORDING = b"".join(
    line + b"\n"
    for line in (
        json.dumps({"version": 2, "width": 10**9, "height": 10**9, "title": ALL}).encode(),
        json.dumps([0.1, "o", ALL]).encode(),
        b'[0.2, "o", "' + ALL.encode("utf-8", "replace") + b'"]',
        b'[1e999, "o", "x"]',
        b'[0.3, "r", "999999x999999"]',
        DEEP[:200_000],
        b"\x1b]0;title\x07 no event at all \xff\x9b31m",
    )
)

FILES = {
    "agent/agent.log": f"begin {ALL} end\n".encode("utf-8", "replace") + b"\x9b31m\xff\n",
    "agent/trajectory.json": trajectory(f"said {ALL} \ud800 end"),
    "agent/screen.cast": RECORDING,
    "agent/page.html": b"<script>fetch('http://evil.invalid')</script>",
    "agent/image.svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "agent/paper.pdf": b"%PDF-1.7 /JavaScript",
    "agent/program.js": b"alert(1)",
    "agent/page.xhtml": b"<html xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></html>",
    "agent/notes.md": b"<img src=x onerror=alert(1)>",
    "agent/looks-like.txt": b"<!doctype html><script>alert(1)</script>",
    "agent/looks-like.json": b"<script>alert(1)</script>",
    "agent/looks-like.png": b"<svg onload=alert(1)>",
    'agent/a"; filename=evil.exe; x=".bin': b"x",
    "agent/;rm -rf ~.sh": b"x",
}


def hostile_result() -> Result:
    tests = (TestResult(name=f"test_{ALL}", status=TestStatus.FAILED, message=ALL),)
    return Result(
        outcome=Outcome.FAILED, rewards={"reward": 0.0, f"other {ALL}": 1.0}, tests=tests, message=f"message {ALL}"
    )


async def fill(home: Path, place: Path) -> None:
    """Job 1 is hostile, job 2 too, and nobody can read what it left; job 3 is like any other."""
    async with open_installation(Settings(home=home, _env_file=None)) as there:
        [task] = await there.library.add(write_task(place, "plain"))
        await there.library.source(task)
        words = {"name": f"hostile {ALL}", "category": ALL, "difficulty": ALL, "description": ALL, "instruction": ALL}
        await there.store.tasks.save(task.model_copy(update={**words, "digest": f"sha256:{1:064x}"}), there.clock())
        honest = {"agent/trajectory.json": trajectory("Done, é 漢 🎉."), "agent/a.log": "é\n".encode()}
        await run(there, TaskRef(name=f"hostile {ALL}", digest=task.digest), hostile_result(), FILES)
        await run(there, TaskRef(name="deep", digest=task.digest), None, {"agent/trajectory.json": DEEP})
        await run(there, TaskRef(name="honest", digest=task.digest), None, honest)


async def run(there: Installation, task: TaskRef, result: Result | None, files: dict[str, bytes]) -> None:
    agents = (AgentSpec(name="oracle"),)
    spec = JobSpec(name=f"job of {task.name}", tasks=(task,), agents=agents)
    job = await there.store.jobs.create(spec, tuple(plan(spec)), there.clock())
    runner = FakeRunner(None if result is None else lambda _: result, files=files)
    worker = assemble_worker(there, runner, 1, job.id)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while not (await ended(there, job.id)):
            await asyncio.sleep(0.02)
    worker.leave()
    await working


async def ended(there: Installation, job: int) -> Any:
    counts = (await there.store.jobs.counts([job]))[job]
    assert not counts.error
    return counts.ended
