"""Watches a Harbor trial: reports its phases, times the build separately, and collects what was not downloaded."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import override

from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.trial import Trial

from seatrial.domain.result import FileLeftOut, FilesLeftOut, PhaseTiming
from seatrial.domain.trial import Phase
from seatrial.ports.runner import Progress
from seatrial.sandboxes.sandbox import Sandbox, SandboxPhase

_PHASES = {
    TrialEvent.ENVIRONMENT_START: Phase.START,
    TrialEvent.AGENT_START: Phase.AGENT,
    TrialEvent.VERIFICATION_START: Phase.VERIFY,
}
_NOT_DOWNLOADED = "Not downloaded from %s: %s"
"""A sandbox writes this line to the trial's log for each file, because Harbor's calls return nothing else."""
_MORE = re.compile(r"and (\d{1,12}) more \((.*)\)", re.DOTALL)
_MOST_EXAMPLES = 20
_LONGEST = 300


class NotDownloaded(logging.Handler):
    """Collects the files that a sandbox did not download, from the logger of one trial."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._count = 0
        self._examples: list[FileLeftOut] = []

    @property
    def found(self) -> FilesLeftOut | None:
        return FilesLeftOut(count=self._count, examples=tuple(self._examples)) if self._count else None

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.msg != _NOT_DOWNLOADED or not isinstance(record.args, tuple) or len(record.args) != 2:
            return
        folder, line = map(str, record.args)
        if more := _MORE.fullmatch(line):
            self._add(folder, more[2], int(more[1]))
        else:
            place, _, reason = line.partition(": ")
            self._add(f"{folder}/{place}", reason or "It was left out.", 1)

    def _add(self, path: str, reason: str, count: int) -> None:
        self._count += count
        if len(self._examples) < _MOST_EXAMPLES:
            self._examples.append(FileLeftOut(path=_printable(path), reason=_printable(reason)))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_LONGEST])


class Watch:
    """One per try."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began: dict[SandboxPhase, datetime] = {}
        self._not_downloaded = NotDownloaded()

    @property
    def left_out(self) -> FilesLeftOut | None:
        """Files that stayed in the sandbox."""
        return self._not_downloaded.found

    @contextmanager
    def attached(self, trial: Trial) -> Iterator[None]:
        """Watches the trial. Loggers outlive their trials, so the handler is removed at the end."""
        for event in _PHASES:
            trial.add_hook(event, self._entered)
        sandbox = trial.agent_environment
        if isinstance(sandbox, Sandbox):
            build_log = trial.paths.trial_dir / "build.log"
            sandbox.on_phase = self._sandbox_entered
            sandbox.on_build_output = lambda text: _append(build_log, text)
            self._progress.shows(sandbox)
        trial.logger.addHandler(self._not_downloaded)
        try:
            yield
        finally:
            trial.logger.removeHandler(self._not_downloaded)

    def refine(self, timings: tuple[PhaseTiming, ...]) -> tuple[PhaseTiming, ...]:
        """Splits Harbor's timing of the environment into the build and the start."""
        return tuple(part for timing in timings for part in self._split(timing))

    async def _entered(self, event: TrialHookEvent) -> None:
        await self._progress.phase(_PHASES[event.event])

    async def _sandbox_entered(self, phase: SandboxPhase) -> None:
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


def _append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8", errors="replace") as file:
        file.write(text)
