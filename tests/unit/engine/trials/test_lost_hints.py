"""A queued trial whose announcement was lost is announced again by whoever recovers trials."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.quiet_wake_up import QuietWakeUp

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TASK = Task(digest="sha256:" + "0" * 64, name="answer-file", format=TaskFormat.HARBOR, instruction="Do it.")


@pytest.mark.parametrize(("seconds", "claimed", "again"), [(0, False, False), (6, False, True), (6, True, False)])
async def test_what_is_due_for_seconds_is_announced_again(seconds: int, claimed: bool, again: bool) -> None:
    store, wake_up = MemoryStore(), QuietWakeUp()
    await store.tasks.save(TASK, NOON)
    spec = JobSpec(tasks=(TaskRef(name=TASK.name, digest=TASK.digest),), agents=(AgentSpec(name="oracle"),))
    await store.jobs.create(spec, tuple(plan(spec)), NOON)
    if claimed:
        await store.trials.claim("w", timedelta(minutes=1), 1, NOON)
    now = NOON + timedelta(seconds=seconds)
    recovery = Recovery(store, wake_up, lambda: now, lambda name: False, LeaseTrust(30, 5, 10))
    assert await recovery.sweep() == 0
    assert bool(wake_up.announced) == again
