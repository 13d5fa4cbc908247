"""Jobs to compare: the golden set, two jobs whose trials left steps and recordings, and two of ten thousand trials."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Lock, Result, StoredFile, TestResult, TestStatus, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Outcome, Trial
from seatrial.wiring import Installation

_BEGAN = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)
_LEASE = timedelta(minutes=1)
TASKS = ("walk-alike", "walk-apart", "walk-old")
STEPS = {"old": ("look", "think", "write", "check"), "new": ("look", "guess", "write")}
"""What the agents of the two jobs do at ``walk-apart``: they part at their second step, and write again."""


async def fill_duo(there: Installation) -> tuple[int, int]:
    """An old and a new version of an agent on two common tasks, two attempts each; the old one has a third task."""
    for number, name in enumerate(TASKS):
        await there.store.tasks.save(_task(name, number), _BEGAN)
    return await _walk(there, "old", TASKS), await _walk(there, "new", TASKS[:2])


async def _walk(there: Installation, version: str, tasks: tuple[str, ...]) -> int:
    refs = tuple(TaskRef(name=name, digest=_task(name, TASKS.index(name)).digest) for name in tasks)
    agents = (AgentSpec(name="terminus-2", model=f"scripted/{version}", options={"version": version}),)
    spec = JobSpec(name=f"walk of the {version}", tasks=refs, agents=agents, attempts=2)
    job = await there.store.jobs.create(spec, list(plan(spec)), _BEGAN)
    for trial in await there.store.trials.claim("shelf", _LEASE, 20, _BEGAN, job_id=job.id):
        steps = STEPS[version] if trial.task.name == "walk-apart" else STEPS["old"]
        passed = version == "old" or trial.task.name == "walk-alike"
        await _finish(there, trial, version, steps, passed)
    return job.id


async def _finish(there: Installation, trial: Trial, version: str, steps: tuple[str, ...], passed: bool) -> None:
    files = {"agent/trajectory.json": _trajectory(steps), "agent/recording.cast": _recording(steps)}
    for path, content in files.items():
        await there.blobs.put_bytes(f"trials/{trial.id}/{trial.try_number}/{path}", content)
    tests = (
        TestResult(name="test_answer", status=TestStatus.PASSED if passed else TestStatus.FAILED),
        TestResult(name="test_start", status=TestStatus.PASSED),
    )
    result = Result(
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        rewards={"reward": float(passed)},
        tests=tests,
        usage=Usage(input_tokens=100 * len(steps), output_tokens=10, cost_usd=0.01 * len(steps)),
        seconds=9.0,
        lock=Lock(seatrial="0.1.0", harbor="1", task_digest=trial.task.digest, sandbox="oci", agent_version=version),
        files=tuple(StoredFile(path=path, size=len(content)) for path, content in files.items()),
    )
    await there.store.trials.finish(trial.id, trial.try_number, result, _BEGAN + timedelta(seconds=9))


def _trajectory(steps: tuple[str, ...]) -> bytes:
    first = {"step_id": 1, "source": "user", "message": "Walk.", "timestamp": _at(1)}
    own = [
        {
            "step_id": number,
            "source": "agent",
            "timestamp": _at(number),
            "message": f"I {word}.",
            "tool_calls": [{"function_name": "bash", "arguments": {"keystrokes": f"{word}\n"}}],
            "observation": {"results": [{"content": f"saw {word}"}]},
        }
        for number, word in enumerate(steps, start=2)
    ]
    return json.dumps({"schema_version": "ATIF-v1.2", "steps": [first, *own]}).encode()


def _recording(steps: tuple[str, ...]) -> bytes:
    """The screen shows a step's word a second before the step ends."""
    head = {"version": 2, "width": 80, "height": 12, "timestamp": int(_BEGAN.timestamp())}
    events = [[float(number - 1), "o", f"screen of {word}\r\n"] for number, word in enumerate(steps, start=2)]
    return "\n".join(json.dumps(line) for line in (head, *events)).encode() + b"\n"


def _at(seconds: int) -> str:
    return (_BEGAN + timedelta(seconds=seconds)).isoformat()


def _task(name: str, number: int) -> Task:
    digest = f"sha256:{6000 + number:064x}"
    return Task(digest=digest, name=name, format=TaskFormat.HARBOR, instruction="Walk.", description="Walk.")


def grade_all(home: Path, jobs: tuple[int, ...]) -> None:
    """Every trial of these jobs passes or fails, by its number: no trial runs that fast."""
    with sqlite3.connect(home / "seatrial.db") as database:
        for job in jobs:
            database.execute(
                """
                UPDATE trials SET state = 'ended', outcome = CASE WHEN chance THEN 'passed' ELSE 'failed' END,
                  reward = chance, seconds = 10 + id % 7, spent_seconds = 10 + id % 7, spent_cost_usd = 0.01 + id % 3,
                  spent_input_tokens = 100 + id % 11, spent_output_tokens = 10, attempt = 1
                FROM (SELECT id AS number, (id * 7919 + job_id * 31) % 97 < length(task_name) * 5 + id % 40 AS chance
                      FROM trials WHERE job_id = :job)
                WHERE id = number
                """,
                {"job": job},
            )
            database.execute("UPDATE jobs SET cancelled_at = NULL WHERE id = :job", {"job": job})
