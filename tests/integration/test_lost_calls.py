"""The calls of a worker that was killed are counted by whoever recovers its trials on the same machine."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seatrial.domain.job import AgentSpec, JobSpec, RetryPolicy
from seatrial.domain.model_calls.model_call import CallUsage, ModelCall
from seatrial.domain.result import Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Trial
from seatrial.gateway.journal import Journal
from seatrial.settings import Settings
from seatrial.system.processes import ProcessIdentity, WorkerName
from seatrial.wiring import Installation, open_installation
from seatrial.wiring.upkeep import clean_leftovers, recover_lost
from tests.command_line import SAMPLES

AT = datetime(2026, 1, 1, tzinfo=UTC)
DEAD = WorkerName(socket.gethostname(), ProcessIdentity.mine().model_copy(update={"pid": 2**22 - 1}))
"""No process of this machine has so high a number."""


def called_three_times(settings: Settings, trial: Trial) -> None:
    """The third call was going on when the worker died."""
    folder = settings.work_dir / DEAD.folder / f"{trial.id}-{trial.try_number}"
    folder.mkdir(parents=True)
    journal = Journal(folder)
    usage = CallUsage(input_tokens=100, output_tokens=10, reasoning_tokens=4)
    for _ in range(3):
        number = journal.next_number()
        journal.asks(number, "openai/m", AT.isoformat())
        if number < 3:
            call = ModelCall(at=AT, model="openai/m", format="chat", status=200, usage=usage, cost_usd=0.5)
            journal.end(number, call)


async def claimed(installation: Installation, retry: RetryPolicy) -> list[Trial]:
    [task] = await installation.library.add(SAMPLES / "answer-file")
    refs, agents = (TaskRef(name=task.name, digest=task.digest),), (AgentSpec(name="oracle"),)
    await installation.submission.submit(JobSpec(tasks=refs, agents=agents, attempts=2, retry=retry))
    return await installation.store.trials.claim(str(DEAD), timedelta(hours=1), 2, installation.clock())


async def usage_of(installation: Installation, trial: Trial) -> Usage:
    [lost] = await installation.store.trials.tries(trial.id)
    assert lost.result is not None and lost.result.cause is Cause.WORKER_LOST
    return lost.result.usage


async def test_a_lost_try_has_the_usage_of_its_calls(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation:
        called, quiet = await claimed(installation, RetryPolicy())
        called_three_times(settings, called)
        await clean_leftovers(installation)  # a worker looks for leftovers before it knows how another one died
        assert await recover_lost(installation, lambda trials, seconds: None) == 2
        found, other = await usage_of(installation, called), await usage_of(installation, quiet)
        await clean_leftovers(installation)
        assert not (settings.work_dir / DEAD.folder).exists()
    assert (found.model_calls, found.input_tokens, found.output_tokens, found.reasoning_tokens) == (3, 200, 20, 8)
    assert found.cost_usd == 1.0 and other.model_calls is None


@pytest.mark.parametrize(("tries", "counted"), [(2, None), (1, 3)], ids=["graded by the next try", "the last try"])
async def test_a_run_that_the_next_try_grades_is_counted_there(tmp_path: Path, tries: int, counted: int | None) -> None:
    """Its agent had ended, so what it did is kept. Without a next try, the lost one tells what was used."""
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    async with open_installation(settings, at_the_machine=True) as installation:
        called, _ = await claimed(installation, RetryPolicy(max_attempts=tries))
        called_three_times(settings, called)
        (settings.work_dir.parent / "final" / f"{called.id}-{called.try_number}").mkdir(parents=True)
        await recover_lost(installation, lambda trials, seconds: None)
        assert (await usage_of(installation, called)).model_calls == counted
