"""One checker for all faults: whatever happened, this holds in the end.

Every accepted trial has ended, with at most one result that counts. Tries are numbered without a gap. Where a model was
scripted, what was counted is what its server saw. Nothing is left of work folders, sandboxes, mounts and cgroups.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.job import Job
from seatrial.domain.result import Usage
from seatrial.domain.trial import Trial, TrialState
from seatrial.ports.store import TrialFilter
from seatrial.sandboxes.record import SandboxRecord
from seatrial.settings import Settings
from seatrial.wiring import Installation, clean_leftovers, open_installation
from tests.command_line import traces
from tests.waiting import LIMIT_SEC

_PATIENCE_SEC = 240.0


@dataclass(frozen=True)
class Counted:
    """What results say about model calls."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> Counted:
        return cls(usage.model_calls or 0, usage.input_tokens or 0, usage.output_tokens or 0)

    def and_also(self, other: Counted) -> Counted:
        return Counted(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


class Checker:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._store = installation.store

    async def trials(self, job: Job) -> list[Trial]:
        return [row.trial async for row in self._store.trials.each(TrialFilter(job_id=job.id))]

    async def ended(self, *jobs: Job, seconds: float = _PATIENCE_SEC) -> None:
        """Waits for the last of their trials."""
        try:
            async with asyncio.timeout(seconds):
                for job in jobs:
                    while (await self._store.jobs.get(job.id)).ended_at is None:
                        await asyncio.sleep(0.1)
        except TimeoutError:
            left = [trial for job in jobs for trial in await self.trials(job) if trial.state is not TrialState.ENDED]
            raise AssertionError(f"{len(left)} trial(s) did not end: {left[:5]}") from None

    async def check(self, *jobs: Job, model_calls: int | None = None, tokens: tuple[int, int] | None = None) -> None:
        """Of jobs that ended. ``model_calls`` is what the scripted server counted for them, ``tokens`` what it told, of
        input and output."""
        counted = Counted()
        for job in jobs:
            trials = await self.trials(job)
            planned = len(job.spec.tasks) * len(job.spec.agents) * job.spec.attempts
            assert len(trials) == planned or (job.spec.until_settled is not None and len(trials) < planned)
            for trial in trials:
                counted = counted.and_also(await self._check_trial(trial))
            await self._check_events(job, trials)
        if model_calls is not None:
            assert counted.calls == model_calls, "model calls that were counted, and those that were made"
        if tokens is not None:
            assert (counted.input_tokens, counted.output_tokens) == tokens, (
                "tokens that were counted, and that were told"
            )
        await self._nothing_left()

    async def _check_trial(self, trial: Trial) -> Counted:
        assert trial.state is TrialState.ENDED and trial.outcome is not None, trial
        tries = await self._store.trials.tries(trial.id)
        assert [one.number for one in tries] == list(range(1, trial.try_number + 1)), tries
        assert all(one.ended_at is not None for one in tries), tries
        graded = [one for one in tries if one.result is not None and one.result.outcome.graded]
        assert len(graded) <= 1, f"trial {trial.id} has {len(graded)} results"
        if graded:
            assert graded[0].number == trial.try_number, "the graded try is the last one"
        counted = Counted()
        for one in tries:
            counted = counted.and_also(Counted.of(one.result.usage) if one.result is not None else Counted())
        return counted

    async def _check_events(self, job: Job, trials: list[Trial]) -> None:
        told: Counter[tuple[str, int | None]] = Counter()
        after = 0
        while events := await self._store.events.read(after=after, job_id=job.id, limit=1000):
            told.update((event.kind.value, event.trial_id) for event in events)
            after = events[-1].seq
        for trial in trials:
            if trial.try_number:
                assert told["trial.ended", trial.id] == 1, f"trial {trial.id} was told to have ended more than once"
        assert told["job.ended", None] == 1

    async def _nothing_left(self, seconds: float = LIMIT_SEC) -> None:
        """Once somebody has looked for leftovers, as each worker does and ``seatrial gc``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while left := self._left():
            assert asyncio.get_running_loop().time() < deadline, f"left behind: {left[:10]}"
            await clean_leftovers(self._installation)
            await asyncio.sleep(0.2)

    def _left(self) -> list[str]:
        settings = self._installation.settings
        running = settings.work_dir.glob("*/*-*") if settings.work_dir.is_dir() else ()
        found = [str(place) for place in running]
        records = [SandboxRecord.read(place) for place in _folders(settings.cache / "run")]
        ours = [record for record in records if record and record.owner.install == self._installation.id]
        sandboxes = {record.sandbox for record in ours}
        return found + (traces(settings.cache, sandboxes) if sandboxes else [])


async def check_home(
    settings: Settings, *job_ids: int, model_calls: int | None = None, tokens: tuple[int, int] | None = None
) -> None:
    """For tests that drive the command line: opens its installation and checks these jobs."""
    async with open_installation(settings) as installation:
        jobs = [await installation.store.jobs.get(job_id) for job_id in job_ids]
        await Checker(installation).check(*jobs, model_calls=model_calls, tokens=tokens)


def _folders(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []
