"""The search over a job's trials finds what is stored, says how far it looked, and reads no more than it may."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result, StoredFile, TestResult, TestStatus
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.reports.search import (
    MOST_BYTES,
    MOST_OF_A_FILE,
    MOST_TRIALS,
    Found,
    Place,
    search_job,
)
from seatrial.engine.trials.trial_files import TryFiles, try_prefix
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HOSTILE = (
    '{"steps": [{"message": 7}, null, {"step_id": "x", "tool_calls": [3], "observation": []}, {"message": "needle"}]}'
)


class Shelf:
    """A job whose trials left these files and results."""

    def __init__(self) -> None:
        self.store, self.blobs = MemoryStore(), MemoryBlobs()

    async def fill(self, *trials: dict[str, Any]) -> int:
        refs = tuple(TaskRef(name=f"task-{number}", digest=f"sha256:{number:064x}") for number in range(len(trials)))
        spec = JobSpec(tasks=refs, agents=(AgentSpec(name="nop"),))
        job = await self.store.jobs.create(spec, list(plan(spec)), NOW)
        claimed = await self.store.trials.claim("w", timedelta(minutes=1), len(trials), NOW)
        for trial, given in zip(sorted(claimed, key=lambda one: one.id), trials, strict=True):
            files = {path: text.encode() for path, text in given.get("files", {}).items()}
            for path, content in files.items():
                await self.blobs.put_bytes(f"{try_prefix(trial.id, 1)}/{path}", content)
            result = Result(
                outcome=Outcome.FAILED,
                rewards={"reward": 0.0},
                message=given.get("message", ""),
                tests=given.get("tests", ()),
                files=tuple(StoredFile(path=path, size=len(content)) for path, content in files.items()),
            )
            await self.store.trials.finish(trial.id, 1, result, NOW)
        return job.id

    async def search(self, job: int, wanted: str, after: int = 0) -> Found:
        return await search_job(self.store.trials, TryFiles(self.store.trials, self.blobs), job, wanted, after)


def steps(*messages: str) -> str:
    return json.dumps({"steps": [{"step_id": n, "source": "agent", "message": m} for n, m in enumerate(messages, 1)]})


async def test_every_kind_of_text_is_found_where_it_is() -> None:
    shelf = Shelf()
    test = TestResult(name="test_needle", status=TestStatus.FAILED, message="assert 1 == 2")
    job = await shelf.fill(
        {"message": "There is a Needle here."},
        {"tests": (test,)},
        {"files": {"agent/trajectory.json": steps("hay", "more hay\nand a NEEDLE in it")}},
        {"files": {"verifier/test-stdout.txt": "hay\n\x1b[31mneed\x1b[0mle\n", "agent/other.txt": "needle"}},
        {"files": {"agent/trajectory.json": HOSTILE}},
        {"files": {"agent/trajectory.json": steps("hay")}},
    )
    found = await shelf.search(job, "needle")
    places = [(hit.trial_id, hit.place, hit.name, hit.number) for hit in found.hits]
    assert places == [
        (1, Place.MESSAGE, "", None),
        (2, Place.TEST, "test_needle", None),
        (3, Place.STEP, "", 2),
        (4, Place.FILE, "verifier/test-stdout.txt", 2),
        (5, Place.STEP, "", 4),
    ]
    assert (found.hits[0].before, found.hits[0].match, found.hits[0].after) == ("There is a ", "Needle", " here.")
    assert (found.trials, found.next, found.cut) == (6, None, 0)
    assert (await shelf.search(job, "nothing has this")).hits == ()
    assert (await shelf.search(job, "a.*n")).hits == (), "the text is no pattern"


async def test_a_call_stops_and_the_next_one_goes_on() -> None:
    shelf = Shelf()
    job = await shelf.fill(*({"message": "needle" if n == MOST_TRIALS + 1 else "hay"} for n in range(MOST_TRIALS + 3)))
    first = await shelf.search(job, "needle")
    assert (first.hits, first.trials, first.next) == ((), MOST_TRIALS, MOST_TRIALS)
    second = await shelf.search(job, "needle", after=first.next or 0)
    assert (len(second.hits), second.trials, second.next) == (1, 3, None)


async def test_large_files_are_cut_and_counted() -> None:
    shelf = Shelf()
    large = "x" * MOST_OF_A_FILE + "needle"
    times = MOST_BYTES // MOST_OF_A_FILE
    job = await shelf.fill(*({"files": {"verifier/test-stdout.txt": large}} for _ in range(times + 2)))
    found = await shelf.search(job, "needle")
    assert found.hits == ()
    assert (found.trials, found.cut, found.bytes, found.next) == (times, times, MOST_BYTES, times)


async def test_a_file_that_was_removed_is_no_error() -> None:
    shelf = Shelf()
    job = await shelf.fill({"files": {"verifier/test-stdout.txt": "needle"}}, {"message": "needle"})
    await shelf.blobs.delete(try_prefix(1, 1))
    found = await shelf.search(job, "needle")
    assert [hit.trial_id for hit in found.hits] == [2]
