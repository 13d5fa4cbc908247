"""Watches a Harbor trial: tells the phases as they begin, and remembers when, so that a build is timed by itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.not_downloaded import NotDownloaded
from seatrial.domain.result import FilesLeftOut, PhaseTiming
from seatrial.domain.trial import Phase
from seatrial.ports.runner import Progress
from seatrial.sandboxes.sandbox import Sandbox, SandboxPhase

_PHASES = {
    TrialEvent.ENVIRONMENT_START: Phase.START,
    TrialEvent.AGENT_START: Phase.AGENT,
    TrialEvent.VERIFICATION_START: Phase.VERIFY,
}


class _Diary:
    """A build's output, as a file of the trial; there is none where nothing was built."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)


class Watch:
    """One per try."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began: dict[SandboxPhase, datetime] = {}
        self._not_downloaded = NotDownloaded()

    @property
    def left_out(self) -> FilesLeftOut | None:
        """What stayed in the sandbox."""
        return self._not_downloaded.told()

    def attach(self, trial: Trial) -> None:
        sandbox = trial.agent_environment
        for event in _PHASES:
            trial.add_hook(event, self._hear)
        if isinstance(sandbox, Sandbox):
            sandbox.on_phase = self._hear_sandbox
            sandbox.on_build_output = _Diary(trial.paths.trial_dir / "build.log")
            self._progress.shows(sandbox)

    def listening(self, trial: Trial) -> AbstractContextManager[None]:
        """To what the sandbox says in the trial's log; loggers outlive their trials."""
        return self._not_downloaded.listening(trial.logger)

    def refine(self, timings: tuple[PhaseTiming, ...]) -> tuple[PhaseTiming, ...]:
        """Harbor times the environment as one; here it is split into the build and the start."""
        return tuple(part for timing in timings for part in self._split(timing))

    async def _hear(self, event: TrialHookEvent) -> None:
        await self._progress.phase(_PHASES[event.event])

    async def _hear_sandbox(self, phase: SandboxPhase) -> None:
        self._began[phase] = datetime.now(UTC)
        await self._progress.phase(Phase(phase))

    def _split(self, timing: PhaseTiming) -> tuple[PhaseTiming, ...]:
        started = self._began.get("start")
        if timing.phase is not Phase.START or started is None or "build" not in self._began:
            return (timing,)
        build = (started - timing.started_at).total_seconds()
        return (
            timing.model_copy(update={"phase": Phase.BUILD, "seconds": max(build, 0.0)}),
            timing.model_copy(update={"started_at": started, "seconds": max(timing.seconds - build, 0.0)}),
        )
