"""A runner without a sandbox: it goes through the phases and returns scripted results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, Phase
from seatrial.ports.runner import Order, Progress

Script = Callable[[Order], Result]

PASS = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
FAIL = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0})


class FakeRunner:
    """``FakeRunner()`` passes everything. Give a script that decides by order, or results by task and try."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        results: Mapping[str, Sequence[Result]] | None = None,
        seconds: float = 0.0,
        files: Mapping[str, bytes] | None = None,
        lets_go: asyncio.Semaphore | None = None,
    ) -> None:
        """``results``: a task's results, one per try; the last one repeats. ``lets_go``: an agent ends when it gets one
        of these, and they get them in their order."""
        self._script = script
        self._results = results or {}
        self._seconds = seconds
        self._files = files or {}
        self._lets_go = lets_go
        self.orders: list[Order] = []
        """Every order that started, including cancelled ones."""
        self.most_at_once = 0
        self._running = 0

    async def run(self, order: Order, progress: Progress) -> Result:
        self.orders.append(order)
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            for phase in Phase:
                await progress.phase(phase)
                if phase is Phase.AGENT:
                    await asyncio.sleep(self._seconds)
                    if self._lets_go is not None:
                        await self._lets_go.acquire()
            for name, content in self._files.items():
                path = order.work_dir / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return self._result(order).model_copy(update={"seconds": self._seconds})
        finally:
            self._running -= 1

    def _result(self, order: Order) -> Result:
        if self._script is not None:
            return self._script(order)
        results = self._results.get(order.task.name, (PASS,))
        return results[min(order.trial.try_number, len(results)) - 1]
