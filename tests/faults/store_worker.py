"""A worker reduced to its writes, to be run as a process of its own and killed. It tells what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from seatrial.adapters.store_sql.store import SqlStore
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, Phase
from seatrial.ports.store import Heartbeat, PhaseEntry, Store

PASSED = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
LEASE = timedelta(minutes=1)


def work(url: str, name: str, acknowledged: Connection, die_at: tuple[str, int] | None = None) -> None:
    """Works until no trial is left. ``die_at=("before", 3)`` kills the process just before its third commit."""
    if die_at is not None:
        _die_at_commit(*die_at)
    asyncio.run(_work(url, name, acknowledged))


async def _work(url: str, name: str, acknowledged: Connection) -> None:
    async with SqlStore.at(url) as store:
        now = datetime.now(UTC)
        await store.workers.beat(Heartbeat(worker=name, host="here", pid=os.getpid(), capacity=2, started_at=now), now)
        while claimed := await store.trials.claim(name, LEASE, 2, datetime.now(UTC)):
            now = datetime.now(UTC)
            entries = [
                PhaseEntry(trial_id=trial.id, job_id=trial.job_id, try_number=trial.try_number, phase=phase, at=now)
                for trial in claimed
                for phase in (Phase.AGENT, Phase.VERIFY)
            ]
            await store.trials.enter_phases(entries)
            await store.trials.renew(name, {trial.id: trial.try_number for trial in claimed}, LEASE, now)
            await asyncio.gather(*(_finish(store, trial.id, trial.try_number, acknowledged) for trial in claimed))


async def _finish(store: Store, trial_id: int, try_number: int, acknowledged: Connection) -> None:
    await store.trials.finish(trial_id, try_number, PASSED, datetime.now(UTC))
    acknowledged.send((trial_id, try_number))


def _die_at_commit(moment: str, number: int) -> None:
    left = number

    def count(_: Any, __: Any, statement: str, *___: Any) -> None:
        nonlocal left
        if statement == "COMMIT":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(Engine, f"{moment}_cursor_execute", count)
