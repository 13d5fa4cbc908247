"""What no trial would leave behind in time for a test: written into the store and the blobs before the service starts.

Ten thousand trials, a log of twenty megabytes, a trial whose every text is an attack on whoever looks at it, jobs whose
scores are easily told wrong, and jobs to compare.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Failure, PhaseTiming, Result, StoredFile, TestResult, TestStatus, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Outcome, Phase, Trial
from seatrial.settings import Settings
from seatrial.wiring import Installation, open_installation
from tests.browser.gallery import Gallery, fill_gallery
from tests.browser.payloads import ESCAPES, MARKUP, PAYLOADS
from tests.browser.shelf_pairs import fill_duo, grade_all
from tests.golden.trials import record

MANY = 10_000
LOG_BYTES = 20_000_000
LAST_LINE = "this is the last line of the log"
_BEGAN = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Shelf:
    many: int
    """A job of ``MANY`` trials."""
    logged: int
    """A trial with a log of ``LOG_BYTES``."""
    hostile_job: int
    hostile: int
    """A trial of it whose every text is an attack."""
    hostile_task: str
    two: int
    """A job with two configurations: one passed both tasks; the other passed neither, but one in an added attempt."""
    rerun: int
    """The added attempt."""
    mixed: int
    """A job with one pass, one failure and one error."""
    unscored: int
    """A job with nothing but an error."""
    talked: int
    """A trial with a trajectory, and with the prompt and the answer of its model call word for word."""
    golden: int
    """The job of ``tests/golden``."""
    duo: tuple[int, int]
    """Two jobs whose trials left steps and recordings that part."""
    large: tuple[int, int]
    """Two jobs of ``MANY`` graded trials each."""
    gallery: Gallery


async def fill_shelf(home: Path) -> Shelf:
    async with open_installation(Settings(home=home)) as there:
        many = await _many(there)
        logged = await _ended_trial(there, "a long log", {"agent/long.log": _long_log()})
        task = await _hostile_task(there)
        for payload in PAYLOADS:
            await _cancelled_job(there, JobSpec(name=_printable(payload), tasks=(_ref(task),), agents=_NOP))
        hostile = await _ended_trial(
            there, " ".join(map(_printable, MARKUP)), _hostile_files(), task=task, result=_hostile_result()
        )
        job = (await there.store.trials.get(hostile)).trial.job_id
        two, rerun = await _two_configurations(there)
        mixed = await _graded(there, "one error", ("passed", "failed", "error"))
        unscored = await _graded(there, "only an error", ("error",))
        talked = await _ended_trial(there, "a talk", _talk())
        golden, duo = (await record(there.store)).id, await fill_duo(there)
        large = (await _many(there), await _many(there))
        gallery = await fill_gallery(there.store)
    grade_all(home, large)
    return Shelf(
        many, logged, job, hostile, task.digest, two, rerun, mixed, unscored, talked, golden, duo, large, gallery
    )


_NOP = (AgentSpec(name="nop"),)


async def _many(there: Installation) -> int:
    refs = tuple(TaskRef(name=f"task-{number:03d}", digest=f"sha256:{number:064x}") for number in range(100))
    spec = JobSpec(name="ten thousand trials", tasks=refs, agents=_NOP, attempts=MANY // 100)
    return (await _cancelled_job(there, spec)).id


async def _cancelled_job(there: Installation, spec: JobSpec) -> Job:
    """Held until it is cancelled: no worker ever sees its trials."""
    job = await there.store.jobs.create(spec, list(plan(spec)), _BEGAN, hold=True)
    await there.store.jobs.cancel(job.id, _BEGAN)
    return job


async def _graded(there: Installation, name: str, outcomes: Sequence[str]) -> int:
    """A job with one task for each outcome."""
    refs = tuple(_ref(_task(f"graded-{number}", 4000 + number)) for number in range(len(outcomes)))
    spec = JobSpec(name=name, tasks=refs, agents=_NOP)
    job = await there.store.jobs.create(spec, list(plan(spec)), _BEGAN)
    by_task = dict(zip((ref.name for ref in refs), outcomes, strict=True))
    for trial in await there.store.trials.claim("shelf", timedelta(minutes=1), len(refs), _BEGAN, job_id=job.id):
        await _finish(there, trial, Outcome(by_task[trial.task.name]))
    return job.id


async def _two_configurations(there: Installation) -> tuple[int, int]:
    tasks = [_task(f"graded-{number}", 4000 + number) for number in range(2)]
    for task in tasks:
        await there.store.tasks.save(task, _BEGAN)
    refs = tuple(map(_ref, tasks))
    spec = JobSpec(name="two agents", tasks=refs, agents=(*_NOP, AgentSpec(name="oracle")))
    job = await there.store.jobs.create(spec, list(plan(spec)), _BEGAN)
    trials = await there.store.trials.claim("shelf", timedelta(minutes=1), 4, _BEGAN, job_id=job.id)
    for trial in trials:
        await _finish(there, trial, Outcome.PASSED if trial.agent == "oracle" else Outcome.FAILED)
    await there.store.jobs.add_attempts([next(trial.id for trial in trials if trial.agent == "nop")], _BEGAN)
    [rerun] = await there.store.trials.claim("shelf", timedelta(minutes=1), 1, _BEGAN, job_id=job.id)
    await _finish(there, rerun, Outcome.PASSED)
    return job.id, rerun.id


async def _finish(there: Installation, trial: Trial, outcome: Outcome) -> None:
    rewards = {} if outcome is Outcome.ERROR else {"reward": float(outcome is Outcome.PASSED)}
    cause = Cause.VERIFIER if outcome is Outcome.ERROR else None
    result = Result(outcome=outcome, cause=cause, rewards=rewards, seconds=9.0)
    await there.store.trials.finish(trial.id, trial.try_number, result, _BEGAN + timedelta(seconds=9))


async def _ended_trial(
    there: Installation, name: str, files: dict[str, bytes], *, task: Task | None = None, result: Result | None = None
) -> int:
    chosen = task or _task("kept", 1000)
    await there.store.tasks.save(chosen, _BEGAN)
    spec = JobSpec(name=name, tasks=(_ref(chosen),), agents=(AgentSpec(name="terminus-2", model="scripted/shell"),))
    job = await there.store.jobs.create(spec, list(plan(spec)), _BEGAN)
    [trial] = await there.store.trials.claim("shelf", timedelta(minutes=1), 1, _BEGAN, job_id=job.id)
    for path, content in files.items():
        await there.blobs.put_bytes(f"trials/{trial.id}/{trial.try_number}/{path}", content)
    kept = tuple(StoredFile(path=path, size=len(content)) for path, content in files.items())
    told = (result or Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, seconds=9.0)).model_copy(
        update={"files": kept, "timings": _timings()}
    )
    await there.store.trials.finish(trial.id, trial.try_number, told, _BEGAN + timedelta(seconds=9))
    return trial.id


def _timings() -> Sequence[PhaseTiming]:
    return tuple(
        PhaseTiming(phase=phase, started_at=_BEGAN + timedelta(seconds=at), seconds=seconds)
        for phase, at, seconds in ((Phase.BUILD, 0, 1), (Phase.START, 1, 1), (Phase.AGENT, 2, 6), (Phase.VERIFY, 8, 1))
    )


def _task(name: str, number: int, text: str = "Do it.") -> Task:
    return Task(
        digest=f"sha256:{number:064x}", name=name, format=TaskFormat.HARBOR, instruction=text, description=text[:200]
    )


def _talk() -> dict[str, bytes]:
    steps = [
        {"step_id": 1, "source": "user", "message": "Please say hello."},
        {"step_id": 2, "source": "agent", "message": "I will say hello.", "metrics": {"prompt_tokens": 3}},
    ]
    return {
        "agent/trajectory.json": json.dumps({"steps": steps}).encode(),
        "agent/episode-0/prompt.txt": b"the prompt, word for word",
        "agent/episode-0/response.txt": b"the answer, word for word",
        "verifier/test-stdout.txt": b"one line\nhello was expected, and it is the second line\n",
    }


def _ref(task: Task) -> TaskRef:
    return TaskRef(name=task.name, digest=task.digest)


def _long_log() -> bytes:
    line = b"2026-05-01T12:00:00Z \x1b[32mINFO\x1b[0m step %07d did what it was asked to do, and then some more of it\n"
    lines = b"".join(line % number for number in range(LOG_BYTES // (len(line) - 1)))
    return lines + LAST_LINE.encode() + b"\n"


async def _hostile_task(there: Installation) -> Task:
    """Names of tasks are checked where they come in; what is written into them is not."""
    for number, payload in enumerate(PAYLOADS):
        task = _task(f"hostile-{number:02d}", 2000 + number, _printable(payload))
        await there.store.tasks.save(task.model_copy(update={"category": _printable(payload)}), _BEGAN)
    whole = _task("hostile", 3000, "\n".join(PAYLOADS))
    await there.store.tasks.save(whole, _BEGAN)
    return whole


def _hostile_result() -> Result:
    tests = tuple(TestResult(name=payload, status=TestStatus.FAILED, message=payload) for payload in PAYLOADS)
    return Result(
        outcome=Outcome.FAILED,
        rewards={"reward": 0.0, **{_printable(payload): 0.0 for payload in MARKUP[:3]}},
        tests=tests,
        message="\n".join(PAYLOADS),
        failure=Failure(type=MARKUP[1], message="\n".join(PAYLOADS), traceback="\n".join(PAYLOADS)),
        usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.01),
        seconds=9.0,
    )


def _hostile_files() -> dict[str, bytes]:
    steps = [
        {
            "step_id": number + 1,
            "source": payload,
            "timestamp": (_BEGAN + timedelta(seconds=2 + number * 0.1)).isoformat(),
            "message": payload,
            "reasoning_content": payload,
            "tool_calls": [{"function_name": payload, "arguments": {"keystrokes": payload}}],
            "observation": {"results": [{"content": payload}]},
            "metrics": {"prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.001},
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    head = {"version": 2, "width": 160, "height": 60, "timestamp": int(_BEGAN.timestamp()) + 2}
    events = [[0.05 * number, "o", payload + "\r\n"] for number, payload in enumerate(PAYLOADS)]
    written = "\n".join(PAYLOADS).encode()
    names = {f"agent/{_file_name(payload)}.txt": written for payload in PAYLOADS}
    return {
        "agent/trajectory.json": json.dumps({"schema_version": "ATIF-v1.2", "steps": steps}).encode(),
        "agent/recording.cast": "\n".join(json.dumps(line) for line in (head, *events)).encode() + b"\n",
        "agent/agent.log": written,
        "verifier/test-stdout.txt": written,
        **names,
    }


def _printable(payload: str) -> str:
    """Names of jobs and keys of blobs hold no control characters; the rest of an escape stays."""
    return "".join(letter for letter in payload if letter.isprintable())


def _file_name(payload: str) -> str:
    return _printable(payload).replace("/", "∕").replace("\\", "")


HOSTILE_WORDS = tuple(payload.split(" ", 1)[0] for payload in (*MARKUP, *ESCAPES))
