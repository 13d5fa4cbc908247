"""The record of a trial is found in its last try that has one, and brought from the blobs of any machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import RECORD_FILE, Replay
from seatrial.domain.result import Result, StoredFile
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome
from seatrial.engine.trials.call_record import check_replay, fetch_record
from seatrial.errors import InvalidInput
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RECORD = StoredFile(path=RECORD_FILE, size=6)
SPEC = JobSpec(tasks=(TaskRef(name="t", digest="sha256:t"),), agents=(AgentSpec(name="terminus-2", model="openai/m"),))


def replaying(trial: int, agent: str | None = "openai/m", miss: ReplayMiss = ReplayMiss.ERROR) -> JobSpec:
    agents = (AgentSpec(name="terminus-2", model=agent),)
    return SPEC.model_copy(update={"agents": agents, "replay": Replay(trial=trial, miss=miss)})


async def tried(store: MemoryStore, *tries: Sequence[StoredFile]) -> int:
    """A trial whose tries left these files; the last one ended it."""
    job = await store.jobs.create(SPEC, list(plan(SPEC)), NOW)
    trial_id = 0
    for number, files in enumerate(tries, 1):
        [trial] = await store.trials.claim("w", timedelta(minutes=1), 1, NOW, job_id=job.id)
        trial_id = trial.id
        if number < len(tries):
            result = Result(outcome=Outcome.ERROR, cause=Cause.LLM, files=tuple(files))
            await store.trials.try_again(trial.id, trial.try_number, result, timedelta(0), NOW)
        else:
            result = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, files=tuple(files))
            await store.trials.finish(trial.id, trial.try_number, result, NOW)
    return trial_id


@pytest.mark.parametrize(("tries", "number"), [([[RECORD]], 1), ([[RECORD], [RECORD]], 2), ([[RECORD], []], 1)])
async def test_the_last_record_is_brought_to_this_machine(
    tmp_path: Path, tries: list[list[StoredFile]], number: int
) -> None:
    store, blobs = MemoryStore(), MemoryBlobs()
    trial = await tried(store, *tries)
    for each in range(1, len(tries) + 1):
        await blobs.put_bytes(f"trials/{trial}/{each}/{RECORD_FILE}", f"try {each}\n".encode())
    await check_replay(store.trials, replaying(trial))
    await fetch_record(store.trials, blobs, Replay(trial=trial), tmp_path / "x")
    assert (tmp_path / "x").read_text() == f"try {number}\n"


async def test_what_cannot_be_replayed_is_refused_with_a_way(tmp_path: Path) -> None:
    store, blobs = MemoryStore(), MemoryBlobs()
    plain, recorded = await tried(store, []), await tried(store, [RECORD])
    waiting = (await store.jobs.create(SPEC, list(plan(SPEC)), NOW)).id
    assert waiting
    with pytest.raises(InvalidInput, match="were not kept") as refused:
        await check_replay(store.trials, replaying(plain))
    assert refused.value.field == "replay" and "--record full" in (refused.value.fix or "")
    with pytest.raises(InvalidInput) as unknown:
        await check_replay(store.trials, replaying(999))
    assert unknown.value.field == "replay"
    with pytest.raises(InvalidInput, match="nothing to replay"):
        await check_replay(store.trials, replaying(recorded, agent=None))
    with pytest.raises(InvalidInput, match="files were removed"):
        await fetch_record(store.trials, blobs, Replay(trial=recorded), tmp_path / "x")
    await check_replay(store.trials, SPEC)


async def test_a_trial_that_runs_has_no_record_yet() -> None:
    store = MemoryStore()
    job = await store.jobs.create(SPEC, list(plan(SPEC)), NOW)
    [trial] = await store.trials.claim("w", timedelta(minutes=1), 1, NOW, job_id=job.id)
    with pytest.raises(InvalidInput, match="has not ended yet"):
        await check_replay(store.trials, replaying(trial.id))


@pytest.mark.parametrize(
    ("spec", "calls"), [(SPEC, True), (replaying(1), False), (replaying(1, miss=ReplayMiss.LIVE), True)]
)
def test_only_a_strict_replay_calls_nobody(spec: JobSpec, calls: bool) -> None:
    assert spec.calls_providers is calls
