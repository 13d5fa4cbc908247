"""The implementation of a rollout: a Harbor ``Trial``, as the runner uses it, with an agent that gets its commands
here.

Task limits, users, network phases, healthchecks and verdicts are therefore the same as in every other trial. Callers
use ``Rollout``; everything here runs on the event loop of ``RolloutHost``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from harbor.environments.base import ExecResult
from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.additions import facts_of, with_facts
from seatrial.adapters.runner_harbor.outcome import result_of, without_host_paths
from seatrial.domain.trial import Phase
from seatrial.errors import SeatrialError
from seatrial.rollouts.agent import DirectedAgent, OutOfTime
from seatrial.rollouts.graded import Graded, as_faults, graded
from seatrial.rollouts.transcript import LONGEST_ANSWER, Shell, entry, read_answer, share, tail
from seatrial.system.removal import remove_tree

_LONGEST_VERIFIER_OUTPUT = 20_000


class OpenTrial:
    """A started sandbox. The caller must close it; grading closes it too."""

    def __init__(self, trial: Trial, directory: Path, *, longest_answer: int = LONGEST_ANSWER) -> None:
        assert isinstance(trial.agent, DirectedAgent)
        self._trial = trial
        self._agent = trial.agent
        self._directory = directory
        self._longest_answer = longest_answer
        self._running: asyncio.Task[object] | None = None
        self._shell = Shell()
        self._fault: SeatrialError | None = None
        self.out_of_time = False

    async def start(self) -> None:
        """Builds or finds the image, starts the sandbox and waits until the agent's phase begins. On an error, or if
        cancelled, nothing is left behind."""
        self._running = asyncio.create_task(self._trial.run())
        begun = asyncio.create_task(self._agent.begun.wait())
        try:
            await asyncio.wait({self._running, begun}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self.close()
            raise
        finally:
            begun.cancel()
        if not self._agent.begun.is_set():
            try:
                self._read_result()
            finally:
                await self.close()

    async def execute(self, commands: Sequence[str], timeout_sec: float | None) -> str:
        """Runs the commands one after another; returns the output as a terminal would show it. Raises if the sandbox
        fails."""
        limit = share(self._longest_answer, len(commands))
        return "\n".join([await self._execute(command, timeout_sec, limit) for command in commands])

    async def grade(self) -> Graded:
        """Ends the agent's phase and runs the task's tests. Infrastructure errors are raised, never scored."""
        if self._fault is not None:
            raise self._fault
        assert self._running is not None, "start it before grading"
        self._agent.finish()
        try:
            await asyncio.shield(self._running)
            return await asyncio.to_thread(self._read_result)
        finally:
            await self.close()

    async def close(self) -> None:
        """Removes the sandbox and all files of the try. May be called again."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await asyncio.to_thread(remove_tree, self._directory)

    async def _execute(self, command: str, timeout_sec: float | None, limit: int) -> str:
        script, end = self._shell.wrap(command)
        whole_sec = None if timeout_sec is None else max(round(timeout_sec), 1)
        try:
            done = await self._run(script, whole_sec)
        except SeatrialError as broken:
            self._fault = broken
            raise
        if isinstance(done, str):
            return entry(command, "", done, limit)
        output, cwd = read_answer(f"{done.stdout or ''}{done.stderr or ''}", end)
        if cwd:
            self._shell = Shell(cwd=cwd)
        return entry(command, output, done.return_code, limit)

    async def _run(self, script: str, timeout_sec: int | None) -> ExecResult | str:
        """The exit status, or why there is none."""
        with as_faults(Phase.START):
            try:
                return await self._agent.command(script, timeout_sec)
            except OutOfTime:
                self.out_of_time = True
                return "not run to its end: the time for this task is over"
            except RuntimeError as error:
                if "timed out" not in str(error):  # the wording of Harbor's environments
                    raise
                return f"killed after {timeout_sec} seconds, with everything it had started"

    def _read_result(self) -> Graded:
        facts = facts_of(self._trial)
        result = without_host_paths(result_of(self._trial.result, self._directory), self._directory)
        result = result.model_copy(update={"marks": with_facts(result.marks, facts)})
        return graded(result, self._verifier_output())

    def _verifier_output(self) -> str:
        written = self._directory / "verifier" / "test-stdout.txt"
        if not written.is_file() or written.is_symlink():
            return ""
        return tail(written.read_text(errors="replace"), _LONGEST_VERIFIER_OUTPUT)
