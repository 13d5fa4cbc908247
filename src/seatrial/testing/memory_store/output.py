"""Live output in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from seatrial.domain.output import RING_PIECES, NewOutput, Output
from seatrial.domain.trial import TrialState
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryOutput(MemoryRecords):
    def __init__(self) -> None:
        super().__init__()
        self._output: list[Output] = []
        self._last_output = 0

    async def append_output(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        for piece in pieces:
            trial = self._trials.get(piece.trial_id)
            if trial is None or trial.state is not TrialState.RUNNING or trial.attempt != piece.attempt:
                continue
            self._last_output += 1
            self._output.append(Output(seq=self._last_output, at=now, **piece.model_dump()))
            mine = [kept.seq for kept in self._output if kept.trial_id == piece.trial_id]
            gone = set(mine[:-RING_PIECES])
            self._output = [kept for kept in self._output if kept.seq not in gone]

    async def output(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        return [piece for piece in self._output if piece.trial_id in trial_ids and piece.seq > after][:limit]

    async def drop_output(self, trial_ids: Sequence[int]) -> None:
        self._output = [piece for piece in self._output if piece.trial_id not in trial_ids]
