"""FAULTS 11: a job that is cancelled while no worker is there ends all the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from seatrial.domain.trial import Outcome, TrialState
from seatrial.wiring import clean_leftovers, open_installation, recover_in_background, recover_lost
from tests.faults.checker import Checker
from tests.faults.configurations import Configuration
from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import submit

OTHER_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def setup_in(place: Path, configuration: Configuration) -> Setup:
    """Leases are short here: nobody renews them, and somebody has to wait until they are over."""
    return configuration.of(
        Setup(home=str(place / "home"), diary=str(place / "diary"), gate=str(place / "gate"), lease_sec=3, capacity=2)
    )


async def lose_a_worker(setup: Setup) -> None:
    """One whose death cannot be seen from here; it held two trials."""
    worker = await asyncio.to_thread(FakeWorker.start, setup, OTHER_NAMESPACE)
    async with asyncio.timeout(60):
        while not Path(setup.diary).exists() or len(Path(setup.diary).read_text().splitlines()) < 2:
            await asyncio.sleep(0.05)
    worker.end()


async def test_by_the_service_alone(tmp_path: Path, configuration: Configuration) -> None:
    setup = setup_in(tmp_path, configuration)
    async with open_installation(setup.settings()) as installation, recover_in_background(installation):
        job = await submit(installation, 4)
        await lose_a_worker(setup)
        await installation.store.jobs.cancel(job.id, installation.clock())
        checker = Checker(installation)
        states = [trial.state for trial in await checker.trials(job)]
        assert states.count(TrialState.ENDED) >= 2, "what was queued ends at once"
        await checker.ended(job)
        assert {trial.outcome for trial in await checker.trials(job)} == {Outcome.CANCELLED}
        await checker.check(job)


async def test_by_gc(tmp_path: Path, configuration: Configuration) -> None:
    """It looks seldom, so that one look which takes long is no outage of the store."""
    setup, told = replace(setup_in(tmp_path, configuration), reap_sec=60), list[tuple[int, float]]()
    async with open_installation(setup.settings()) as installation:
        cancelled, kept = await submit(installation, 1), await submit(installation, 1)
        await lose_a_worker(setup)
        await installation.store.jobs.cancel(cancelled.id, installation.clock())
        async with asyncio.timeout(60):
            while len(await installation.store.trials.expired(installation.clock())) < 2:
                await asyncio.sleep(0.1)
        assert await recover_lost(installation, lambda *late: told.append(late)) == 2
        assert told == [(1, 4.0)], "the cancelled one ends at once; the other one's worker gets a chance"
        await clean_leftovers(installation)
        checker = Checker(installation)
        await checker.ended(cancelled)
        await checker.check(cancelled)
        [other] = await checker.trials(kept)
        assert other.state is TrialState.QUEUED, "the other one waits for a worker again"
