"""Whoever queues trials announces them: submission, release, resume, retry, further attempts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from seatrial.domain.trial import Outcome
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_runner import PASS
from seatrial.testing.quiet_wake_up import QuietWakeUp
from seatrial.wiring import open_installation
from tests.integration.queue.fleet import settings_of, submit


async def test_every_way_into_the_queue_announces_its_trials(tmp_path: Path) -> None:
    wake_up = QuietWakeUp()
    async with open_installation(settings_of(tmp_path)) as real:
        submission, control = replace(real.submission, wake_up=wake_up), replace(real.jobs, wake_up=wake_up)
        installation = replace(real, submission=submission)
        job = await submit(installation, 6)
        assert _told(wake_up) == 6
        await control.cancel(job.id)
        _told(wake_up)
        assert await control.resume(job.id) == _told(wake_up) == 6
        trials = await real.store.trials.claim("w", timedelta(minutes=1), 1, real.clock())
        await real.store.trials.finish(trials[0].id, trials[0].try_number, PASS, real.clock())
        assert len(await control.add_attempts(job.id, [Outcome.PASSED])) == _told(wake_up) == 1
        await control.cancel(job.id)
        _told(wake_up)
        assert await control.retry(job.id) == _told(wake_up) == 6
        held = await submission.prepare(job.spec)
        assert _told(wake_up) == 0, "what is held is not announced"
        ids = [row.trial.id async for row in real.store.trials.each(TrialFilter(job_id=held.id))]
        assert await control.release(held, ids) == _told(wake_up) == 6


def _told(wake_up: QuietWakeUp) -> int:
    """Trials that were announced since the last look."""
    told, wake_up.announced = sum(wake_up.announced), []
    return told
