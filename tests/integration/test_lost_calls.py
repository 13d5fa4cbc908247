"""The calls of a worker that was killed are counted by whoever recovers its trials on the same machine."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_call import CallUsage, ModelCall
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause
from seatrial.gateway.journal import Journal
from seatrial.processes import ProcessIdentity, WorkerName
from seatrial.settings import Settings
from seatrial.wiring import open_installation
from seatrial.wiring.upkeep import recover_lost
from tests.command_line import SAMPLES

AT = datetime(2026, 1, 1, tzinfo=UTC)
DEAD = WorkerName(socket.gethostname(), ProcessIdentity.mine().model_copy(update={"pid": 2**22 - 1}))
"""No process of this machine has so high a number."""


async def test_a_lost_try_has_the_usage_of_its_calls(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation:
        [task] = await installation.library.add(SAMPLES / "answer-file")
        spec = JobSpec(
            tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(AgentSpec(name="oracle"),), attempts=2
        )
        await installation.submission.submit(spec)
        store, now = installation.store, installation.clock()
        called, quiet = await store.trials.claim(str(DEAD), timedelta(hours=1), 2, now)
        folder = settings.work_dir / DEAD.folder / f"{called.id}-{called.try_number}"
        folder.mkdir(parents=True)
        journal = Journal(folder)
        usage = CallUsage(input_tokens=100, output_tokens=10, reasoning_tokens=4)
        for _ in range(3):
            number = journal.next_number()
            journal.asks(number, "openai/m", AT.isoformat())
            if number < 3:  # the third one was going on
                call = ModelCall(at=AT, model="openai/m", format="chat", status=200, usage=usage, cost_usd=0.5)
                journal.end(number, call)
        assert await recover_lost(installation, lambda trials, seconds: None) == 2
        [lost], [other] = await store.trials.tries(called.id), await store.trials.tries(quiet.id)
    assert lost.result is not None and lost.result.cause is Cause.WORKER_LOST
    found = lost.result.usage
    assert (found.model_calls, found.input_tokens, found.output_tokens, found.reasoning_tokens) == (3, 200, 20, 8)
    assert found.cost_usd == 1.0
    assert other.result is not None and other.result.usage.model_calls is None
