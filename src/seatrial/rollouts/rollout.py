"""One rollout, as its caller sees it: one sandbox for one trial of one task, graded by the task's own tests.

``RolloutHost`` opens rollouts. Any event loop may use them; the work runs on the host's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.domain.trial import Phase
from seatrial.errors import Conflict
from seatrial.rollouts.background import BackgroundLoop
from seatrial.rollouts.graded import Graded, as_faults
from seatrial.rollouts.open_trial import OpenTrial
from seatrial.rollouts.tasks import FoundTask


class Rollout:
    """Call ``execute_commands`` any number of times, then ``grade``; always ``close``."""

    def __init__(
        self,
        task: FoundTask,
        trial: OpenTrial,
        loop: BackgroundLoop,
        command_timeout_sec: float | None,
        on_end: Callable[[Rollout], None],
    ) -> None:
        self.task = task
        self.transcript: list[str] = []
        """The output of each call."""
        self._trial = trial
        self._loop = loop
        self._command_timeout_sec = command_timeout_sec
        self._on_end = on_end
        self._ended = False

    @property
    def out_of_time(self) -> bool:
        """The task's time limit has passed; it can still be graded."""
        return self._trial.out_of_time

    async def execute_commands(self, commands: Sequence[str], reasoning: str = "") -> str:
        """Runs shell commands one after another and returns their output. The working directory persists between
        commands. ``reasoning`` is the model's own note. Raises a ``TrialFault`` if the sandbox fails."""
        self._refuse_ended()
        answer = await self._loop.run(self._trial.execute(commands, self._command_timeout_sec))
        self.transcript.append(answer)
        return answer

    async def grade(self) -> Graded:
        """Runs the task's own tests and ends the rollout. Infrastructure errors are raised, never scored."""
        self._refuse_ended()
        return await self._loop.run(self._graded())

    async def close(self) -> None:
        """Removes the sandbox. May be called again, and after ``grade``."""
        if not self._ended:
            await self._loop.run(self.end())

    async def end(self) -> None:
        """The same for ``RolloutHost``, which already runs on its own loop."""
        try:
            await self._trial.close()
        finally:
            self._forget()

    async def _graded(self) -> Graded:
        try:
            with as_faults(Phase.VERIFY):
                return await self._trial.grade()
        finally:
            self._forget()

    def _forget(self) -> None:
        self._ended = True
        self._on_end(self)

    def _refuse_ended(self) -> None:
        if self._ended:
            raise Conflict("This rollout has ended.")
