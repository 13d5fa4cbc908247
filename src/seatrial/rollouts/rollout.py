"""One rollout as its caller sees it: a sandbox of its own for one attempt at one task, graded by the task's own tests.

``RolloutHost`` opens rollouts. They may be used from any event loop; the work happens on the room's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.domain.trial import Phase
from seatrial.errors import Conflict
from seatrial.rollouts.attempt import Attempt
from seatrial.rollouts.background import BackgroundLoop
from seatrial.rollouts.graded import Graded, as_faults
from seatrial.rollouts.tasks import FoundTask


class Rollout:
    """``execute_commands`` as often as wanted, then ``grade``; ``close`` in any case."""

    def __init__(
        self,
        task: FoundTask,
        attempt: Attempt,
        loop: BackgroundLoop,
        command_timeout_sec: float | None,
        on_end: Callable[[Rollout], None],
    ) -> None:
        self.task = task
        self.transcript: list[str] = []
        """What each call answered, for whoever wants to see the agent's output afterwards."""
        self._attempt = attempt
        self._loop = loop
        self._command_timeout_sec = command_timeout_sec
        self._on_end = on_end
        self._ended = False

    @property
    def out_of_time(self) -> bool:
        """The task's limit for the attempt has passed; it can still be graded."""
        return self._attempt.out_of_time

    async def execute_commands(self, commands: Sequence[str], reasoning: str = "") -> str:
        """Runs shell commands one after another and says what they printed; the working directory lasts from one to
        the next. ``reasoning`` is the model's own note. A sandbox that broke is a ``TrialFault``."""
        self._refuse_ended()
        answer = await self._loop.run(self._attempt.execute(commands, self._command_timeout_sec))
        self.transcript.append(answer)
        return answer

    async def grade(self) -> Graded:
        """The verdict of the task's own tests; ends the rollout. Faults are raised and never scored."""
        self._refuse_ended()
        return await self._loop.run(self._graded())

    async def close(self) -> None:
        """Removes the sandbox. May be called again, and after ``grade``."""
        if not self._ended:
            await self._loop.run(self.end())

    async def end(self) -> None:
        """The same for the room, which is on its own loop already."""
        try:
            await self._attempt.close()
        finally:
            self._forget()

    async def _graded(self) -> Graded:
        try:
            with as_faults(Phase.VERIFY):
                return await self._attempt.grade()
        finally:
            self._forget()

    def _forget(self) -> None:
        self._ended = True
        self._on_end(self)

    def _refuse_ended(self) -> None:
        if self._ended:
            raise Conflict("This rollout has ended.")
